/** The end of a command: its exit code, and one sentence that says what to do next. */
import { readFileSync } from 'node:fs'
import { faultIn, MayflyError } from '../client/errors.ts'
import { WalletError } from '../client/wallet.ts'
import { ConfigError } from '../config.ts'
import { codeOf, messageOf } from '../lib/errors.ts'
import { reasonOf } from '../lib/reason.ts'
import { InvalidInvoice } from '../protocol/bolt11.ts'
import { UnreadableWhisper } from '../protocol/whisper-envelope.ts'
import { span } from './text.ts'

/** The exit codes of all commands. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notPaid: 3,
  gone: 4,
  unreachable: 5,
  interrupted: 130,
} as const

/** The meaning of each exit code, for the help and for docs/cli.md. */
export const EXIT_MEANINGS: Record<keyof typeof EXIT, string> = {
  ok: 'done',
  failed: 'refused or failed; the sentence on stderr says what to do',
  usage: 'the command line or a setting is wrong; nothing was done',
  notPaid: 'not paid: the price is above the ceiling, the wallet refused, or time ran out',
  gone: 'not there: expired, used up, destroyed or unknown',
  unreachable: 'the service, its Lightning node or a receiver does not answer',
  interrupted: 'interrupted by Ctrl-C or SIGTERM',
}

/** A command failed. The message is a sentence for the user. */
export class CliError extends Error {
  override name = 'CliError'
  readonly code: number
  constructor(message: string, code: number = EXIT.failed, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** The budget of the day does not allow a payment, so no wallet was asked. */
export class BudgetError extends WalletError {
  override name = 'BudgetError'
  constructor(message: string) {
    super(message, 'not paid')
  }
}

export type Ending = { code: number; sentence: string }

/** The exit code and sentence for an error, or null for a bug in this program. */
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

const ANSWERS: Record<string, Ending> = {
  'invoice disagrees': {
    code: EXIT.notPaid,
    sentence:
      'The invoice does not match the quote, so nothing was paid. Do not trust this service.',
  },
  'order expired': {
    code: EXIT.notPaid,
    sentence: 'The quote expired before it was paid. Run the command again for a new one.',
  },
  'order refunded': {
    code: EXIT.gone,
    sentence:
      'The service could not deliver what was paid for, and its operator has refunded it. You can buy it again.',
  },
  'already delivered': {
    code: EXIT.gone,
    sentence:
      'The capability was already delivered, and is never delivered twice. `mayfly list` shows what is saved here.',
  },
  'proof of payment required': {
    code: EXIT.failed,
    sentence:
      'The service asks for proof of this payment: its key was used from two addresses, or what it was to extend had ended. Do not pay again. The operator can deliver the order by its payment hash.',
  },
  'checkout unavailable': {
    code: EXIT.unreachable,
    sentence:
      'The service cannot sell at the moment, because its Lightning node does not answer. Nothing was paid. Try again later.',
  },
  'invalid plan': {
    code: EXIT.failed,
    sentence: 'That plan is not on sale. `mayfly catalog` shows what is.',
  },
  'cannot be extended': {
    code: EXIT.gone,
    sentence:
      'It has ended, is used up or suspended, or would last longer than ten years. Nothing was paid. `mayfly buy` buys a new one.',
  },
  'invalid read limit': {
    code: EXIT.failed,
    sentence: 'The plan allows fewer reads than --reads asks for. `mayfly catalog` shows how many.',
  },
  'invalid reveal time': {
    code: EXIT.failed,
    sentence:
      '--reveal-at must be in the future, and before the whisper ends. `mayfly catalog` shows how long each plan lasts.',
  },
  'password needed': {
    code: EXIT.usage,
    sentence: 'This whisper needs a password: use --password. Nothing was spent.',
  },
  'nothing to send': {
    code: EXIT.usage,
    sentence: 'There is nothing to send: the content is empty. Nothing was bought.',
  },
  'invalid share code': {
    code: EXIT.usage,
    sentence: 'That is neither a share code nor the name of a saved whisper. Nothing was spent.',
  },
  'invalid receipt': {
    code: EXIT.failed,
    sentence: 'The receipt is not valid: its signature, its form or its purpose is wrong.',
  },
  unauthorized: {
    code: EXIT.gone,
    sentence:
      'The service no longer knows this capability, or the token belongs to another one. To remove it here: mayfly forget <name>',
  },
  'ciphertext too large': {
    code: EXIT.failed,
    sentence:
      'The content is too large for the plan, so nothing was bought. `mayfly catalog` shows the limit of each plan.',
  },
  'no event in time': {
    code: EXIT.failed,
    sentence: 'No webhook arrived within --timeout.',
  },
  'inbox ended': {
    code: EXIT.gone,
    sentence: 'No webhook can come any more: the inbox is full, expired or destroyed.',
  },
  'not found': {
    code: EXIT.gone,
    sentence:
      'It does not exist: it has expired, is used up or destroyed, or never existed. If it is saved here: mayfly forget <name>',
  },
}

function endingOfAnswer(error: MayflyError, url: string): Ending {
  const { phrase, status, retryAfterSeconds, cause } = error
  if (phrase === 'sold out') return soldOut(retryAfterSeconds)
  if (phrase === 'service unreachable') return unreachable(url, cause)
  if (phrase === 'unexpected answer') return strange(url, status)
  if (phrase === 'not revealed') return notRevealed(retryAfterSeconds)
  if (phrase === 'price above the ceiling') return tooDear(cause)
  const known = ANSWERS[phrase]
  if (known) return known
  if (cause instanceof WalletError) return endingOfWallet(cause)
  if (UNFINISHED.includes(phrase)) {
    return {
      code: EXIT.failed,
      sentence: `The purchase is not finished: ${phrase}. Continuing never pays twice.`,
    }
  }
  const later = retryAfterSeconds === null ? '' : ` Try again in ${retryAfterSeconds} s.`
  const code = status >= 500 ? EXIT.unreachable : status === 404 ? EXIT.gone : EXIT.failed
  const fault = faultIn(error)
  const told = fault === null ? phrase : `${phrase} (${fault})`
  return { code, sentence: `The service says: ${told}.${later}` }
}

function strange(url: string, status: number): Ending {
  const isElsewhere = status >= 300 && status < 400
  return {
    code: EXIT.unreachable,
    sentence: isElsewhere
      ? `${url} redirects to another address (HTTP ${status}). Put the final address in --url or MAYFLY_URL, for instance with https.`
      : `${url} answers, but not like a Mayfly of this version (HTTP ${status}). Set --url or MAYFLY_URL to use another address.`,
  }
}

function soldOut(seconds: number | null): Ending {
  const when = seconds === null ? 'tomorrow' : `in ${span(seconds)}`
  return {
    code: EXIT.failed,
    sentence: `The service has sold what its operator sells in a day. Nothing was paid. It sells again ${when}.`,
  }
}

function notRevealed(seconds: number | null): Ending {
  const when = seconds === null ? '' : `: it opens in ${span(seconds)} at the earliest`
  return { code: EXIT.failed, sentence: `It is not revealed yet${when}. No read was spent.` }
}

/** The SDK's cause has both numbers, such as `100 sat is above the ceiling of 99 sat`. */
function tooDear(cause: unknown): Ending {
  const numbers = cause instanceof RangeError ? cause.message : 'it is above the ceiling'
  const [, price = '<sats>'] = /^(\d+) sat /.exec(numbers) ?? []
  return {
    code: EXIT.notPaid,
    sentence: `The price of ${numbers}, and nothing was paid. To pay it, add --max-sats ${price} or set MAYFLY_MAX_SATS. \`mayfly catalog\` shows smaller plans.`,
  }
}

/** Phrases of the SDK after which the same command can still collect the purchase. */
const UNFINISHED = ['payment outcome unknown', 'paid but not collected', 'second payment refused']

function endingOfWallet(error: WalletError): Ending {
  const { outcome, message } = error
  if (error instanceof BudgetError) return { code: EXIT.notPaid, sentence: message }
  const money =
    outcome === 'not paid'
      ? 'Nothing was paid.'
      : 'It may have been paid. If you run the command again, nothing is paid twice.'
  return { code: EXIT.notPaid, sentence: `The wallet did not pay: ${message}. ${money}` }
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
    return { code: EXIT.failed, sentence: `${file} ${why}.` }
  }
  return null
}

/** A package that npm leaves out of an install of the tarball (scripts/package.ts), or one that was removed. */
function missingPackage(message: string): Ending | null {
  const name = missingIn(message)
  if (name === null) return null
  const left = leftOut()
  const sentence =
    name in left
      ? `This install has the command line and the SDK, and lacks the packages of the service. To add them: npm install -g ${Object.entries(
          left,
        )
          .map((peer) => peer.join('@'))
          .join(' ')}`
      : `The package ${name} is missing. In a clone run: npm ci`
  return { code: EXIT.failed, sentence }
}

/** Whether the error says that this install is one for buyers, which lacks the packages of the service. */
export function lacksService(error: unknown): boolean {
  if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') return false
  const name = missingIn(messageOf(error))
  return name !== null && name in leftOut()
}

const missingIn = (message: string): string | null =>
  /^Cannot find package '([^']+)'/.exec(message)?.[1] ?? null

/** The packages of the service that the tarball leaves out. A clone leaves out none. */
function leftOut(): Record<string, string> {
  const { peerDependencies = {} } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { peerDependencies?: Record<string, string> }
  return peerDependencies
}

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

function unreachable(url: string, error: unknown): Ending {
  const reason = reasonOf(error)
  const why = reason === null ? '' : `: ${reason}`
  const isRunning = reason === 'connection refused' ? ' Is the service running?' : ''
  return {
    code: EXIT.unreachable,
    sentence: `${url || 'The other side'} does not answer${why}${why.endsWith('?') ? '' : '.'}${isRunning} Set --url or MAYFLY_URL to use another address.`,
  }
}
