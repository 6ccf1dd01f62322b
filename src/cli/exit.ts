/** The end of a command: its exit code, and one sentence that says what to do next. */
import { readFileSync } from 'node:fs'
import { faultIn, MayflyError } from '../client/errors.ts'
import { WalletError } from '../client/wallet.ts'
import { codeOf } from '../lib/errors.ts'
import { reasonOf } from '../lib/reason.ts'
import { InvalidInvoice } from '../protocol/bolt11.ts'
import { ERRORS } from '../protocol/errors.ts'
import { UnreadableWhisper } from '../protocol/whisper-envelope.ts'
import { ConfigError } from '../service/config.ts'
import { EXIT, PHRASES } from './phrases.ts'
import { span } from './text.ts'
import { chainOf } from './trace.ts'

export { EXIT, EXIT_MEANINGS } from './phrases.ts'

/** A command failed. The message is a sentence for the user. */
export class CliError extends Error {
  override name = 'CliError'
  readonly code: number
  constructor(message: string, code: number = EXIT.failed, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** An argument, an option or a setting is wrong, and nothing was done. */
export const misuse = (sentence: string): CliError => new CliError(sentence, EXIT.usage)

/** What is asked for has expired, is used up, or never was. */
export const notThere = (sentence: string): CliError => new CliError(sentence, EXIT.gone)

/** The budget of the day does not allow a payment, so no wallet was asked. */
export class BudgetError extends WalletError {
  override name = 'BudgetError'
  constructor(message: string) {
    super(message, 'not paid')
  }
}

export type Ending = { code: number; sentence: string }

/** The exit code and sentence for an error, or null for one that nobody expects. */
export function endingOf(error: unknown, url: string): Ending | null {
  if (error instanceof CliError) return { code: error.code, sentence: error.message }
  if (error instanceof ConfigError) return { code: EXIT.usage, sentence: error.message }
  if (error instanceof MayflyError) return endingOfAnswer(error, url)
  if (error instanceof WalletError) return endingOfWallet(error)
  if (error instanceof InvalidInvoice) {
    return { code: EXIT.usage, sentence: `That is not a Lightning invoice: ${error.message}.` }
  }
  if (error instanceof UnreadableWhisper) {
    return {
      code: EXIT.failed,
      sentence:
        'The whisper does not open. The code or the password is wrong, or the content is damaged.',
    }
  }
  return endingOfSystem(error, url)
}

/** The same, with a sentence for any error: an answer that the SDK does not check can look like a fault of ours. */
export const anyEnding = (error: unknown, url: string): Ending =>
  endingOf(error, url) ?? {
    code: EXIT.failed,
    sentence: `${url || 'The other side'} answers what this version cannot read, or mayfly has a fault: ${chainOf(error)}. Add --debug to see where.`,
  }

function endingOfAnswer(error: MayflyError, url: string): Ending {
  const { phrase, status, retryAfterSeconds, cause } = error
  if (phrase === 'service unreachable') return unreachable(url, cause)
  if (phrase === 'unexpected answer') return strange(url, status)
  if (phrase === 'not revealed') return notRevealed(retryAfterSeconds)
  if (phrase === 'price above the ceiling') return tooDear(cause)
  if (cause instanceof WalletError) {
    const isOpen = phrase === 'payment outcome unknown'
    return endingOfWallet(cause, isOpen ? 'unknown' : cause.outcome)
  }
  // A service that is newer may say another phrase.
  const known = ownOf<{ status: number; advice: string }>(ERRORS, phrase)
  const byStatus = codeOfStatus(known?.status ?? status)
  const entry = ownOf(PHRASES, phrase)
  const { code, sentence } = typeof entry === 'object' ? entry : { code: byStatus, sentence: entry }
  const after = retryAfterSeconds === null ? '' : `Try again in ${span(retryAfterSeconds)}.`
  const later = code === EXIT.later ? ` ${after || 'Try again later.'}` : ''
  if (sentence !== undefined) return { code, sentence: `${sentence}${later}` }
  if (known === undefined && status === 0) {
    return {
      code,
      sentence: `The purchase is not finished: ${phrase}. Continuing never pays twice.`,
    }
  }
  const fault = faultIn(error)
  const advice = known ? ` ${known.advice}` : ''
  const told = fault === null ? `${phrase}.${advice}` : `${phrase} (${fault}).`
  return { code, sentence: `The service says: ${told}${later}` }
}

const ownOf = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

function codeOfStatus(status: number): number {
  if (status === 408 || status === 429 || status >= 500) return EXIT.later
  if (status === 401 || status === 404) return EXIT.gone
  if (status === 402) return EXIT.notPaid
  return status === 400 ? EXIT.usage : EXIT.failed
}

function strange(url: string, status: number): Ending {
  const isElsewhere = status >= 300 && status < 400
  return {
    code: EXIT.later,
    sentence: isElsewhere
      ? `${url} redirects to another address (HTTP ${status}). Put the final address in --url or MAYFLY_URL, for instance with https.`
      : `${url} answers, but not like a Mayfly of this version (HTTP ${status}). ${ANOTHER_ADDRESS}`,
  }
}

/** A switch says nothing of its time, and a minute at least in every answer. */
const SWITCH_SECONDS = 60

function notRevealed(seconds: number | null): Ending {
  const when = seconds === null ? '' : `: it opens in ${span(seconds)} at the earliest`
  const isMaybeShut = seconds === null || seconds <= SWITCH_SECONDS
  const silence = isMaybeShut
    ? ' If it waits for a monitor to fall silent, it opens only then, and nobody can say when.'
    : ''
  return {
    code: EXIT.failed,
    sentence: `It is not revealed yet${when}. No read was spent.${silence}`,
  }
}

/** The SDK's cause has both numbers, such as `100 sat is above the ceiling of 99 sat`. */
function tooDear(cause: unknown): Ending {
  const numbers = cause instanceof RangeError ? cause.message : 'it is above the ceiling'
  const [, price] = /^([\d.]+) sat /.exec(numbers) ?? []
  const least = price === undefined ? '<sats>' : Math.ceil(Number(price))
  return {
    code: EXIT.notPaid,
    sentence: `The price of ${numbers}, and nothing was paid. To pay it, add --max-sats ${least} or set MAYFLY_MAX_SATS. \`mayfly catalog\` shows smaller plans.`,
  }
}

/** @param outcome of the purchase: an earlier call may have paid it, whatever this one says. */
function endingOfWallet(error: WalletError, outcome = error.outcome): Ending {
  const { message } = error
  if (error instanceof BudgetError) {
    return outcome === 'not paid'
      ? { code: EXIT.notPaid, sentence: message }
      : { code: EXIT.failed, sentence: `${message} It may have been paid before.` }
  }
  if (outcome === 'not paid') {
    const sentence = `The wallet did not pay: ${message}. Nothing was paid.`
    return { code: EXIT.notPaid, sentence }
  }
  return {
    code: EXIT.failed,
    sentence: `The wallet does not say whether it paid: ${message}. It may have been paid. If you run the command again, nothing is paid twice.`,
  }
}

function endingOfSystem(error: unknown, url: string): Ending | null {
  if (!(error instanceof Error)) return null
  const code = codeOf(error) || codeOf(error.cause)
  if (code === 'ERR_MODULE_NOT_FOUND') return missingPackage(error.message)
  const isFetch = error instanceof TypeError && error.message === 'fetch failed'
  if (isFetch || reasonOf(error) !== null) return unreachable(url, error)
  if ('syscall' in error && code !== '') {
    const file = 'path' in error ? String(error.path) : 'A file'
    const why = FILES[code] ?? `cannot be used: ${code}`
    return { code: MISNAMED.includes(code) ? EXIT.usage : EXIT.failed, sentence: `${file} ${why}.` }
  }
  return null
}

/** The package.json of this program. */
export const manifest = (): { version: string; peerDependencies?: Record<string, string> } =>
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

/** A package that npm leaves out of an install of the tarball (scripts/package.ts), or one that was removed. */
function missingPackage(message: string): Ending | null {
  const [, name] = /^Cannot find package '([^']+)'/.exec(message) ?? []
  if (name === undefined) return null
  // The packages of the service. A clone leaves out none.
  const { peerDependencies: left = {} } = manifest()
  const added = Object.entries(left).map((peer) => peer.join('@'))
  const sentence =
    name in left
      ? `This install has the command line and the SDK, and lacks the packages of the service. To add them: npm install -g ${added.join(' ')}`
      : `The package ${name} is missing. In a clone run: npm ci`
  return { code: EXIT.failed, sentence }
}

/** The path that was given is wrong. */
const MISNAMED = ['ENOENT', 'EISDIR']

const FILES: Record<string, string> = {
  ENOENT: 'does not exist',
  EACCES: 'cannot be used: this user lacks the permission',
  EROFS: 'cannot be written: its file system is read-only',
  EEXIST: 'already exists, and is never overwritten',
  EISDIR: 'is a folder, and a file is needed',
  ENOTDIR: 'cannot be used: a part of its path is not a folder',
  ENOSPC: 'cannot be written: its disk is full',
  EDQUOT: 'cannot be written: the disk quota is used up',
}

const ANOTHER_ADDRESS =
  'Set --url or MAYFLY_URL to use another address. For what is saved: mayfly move <name> --to <url>'

function unreachable(url: string, error: unknown): Ending {
  const reason = reasonOf(error)
  const why = reason === null ? '' : `: ${reason}`
  const isRunning = reason === 'connection refused' ? ' Is the service running?' : ''
  return {
    code: EXIT.later,
    sentence: `${url || 'The other side'} does not answer${why}${why.endsWith('?') ? '' : '.'}${isRunning} ${ANOTHER_ADDRESS}`,
  }
}
