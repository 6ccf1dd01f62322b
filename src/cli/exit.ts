/** How a client command ends: its exit code, and one sentence that says what to do next. */
import { MayflyError, UnreadableWhisper } from '../client/index.ts'
import { WalletError } from '../client/wallet.ts'
import { ConfigError } from '../config.ts'
import { codeOf } from '../lib/errors.ts'
import { InvalidInvoice } from '../protocol/bolt11.ts'
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

/** What each means, for the help and for docs/cli.md. */
export const EXIT_MEANINGS: Record<keyof typeof EXIT, string> = {
  ok: 'done',
  failed: 'refused or failed; the sentence on stderr says what to do',
  usage: 'the command line or a setting is wrong; nothing was done',
  notPaid: 'not paid: the price is above the ceiling, the wallet refused, or time ran out',
  gone: 'not there: expired, used up, destroyed or unknown',
  unreachable: 'the service, its Lightning node or a receiver does not answer',
  interrupted: 'interrupted by Ctrl-C or SIGTERM',
}

/** A command cannot do what it was asked; the message is a sentence for who asked. */
export class CliError extends Error {
  override name = 'CliError'
  readonly code: number
  constructor(message: string, code: number = EXIT.failed) {
    super(message)
    this.code = code
  }
}

export type Ending = { code: number; sentence: string }

/** What an error means for who ran the command, or null where it is a bug of ours. */
export function endingOf(error: unknown, url: string): Ending | null {
  if (error instanceof CliError) return { code: error.code, sentence: error.message }
  if (error instanceof ConfigError) return { code: EXIT.usage, sentence: error.message }
  if (error instanceof MayflyError) return endingOfAnswer(error, url)
  if (error instanceof WalletError) return endingOfWallet(error)
  if (error instanceof InvalidInvoice) {
    return { code: EXIT.usage, sentence: `That is no Lightning invoice: ${error.message}.` }
  }
  if (error instanceof UnreadableWhisper) {
    return {
      code: EXIT.failed,
      sentence:
        'It does not open: the code or the password is another one’s, or its bytes are damaged.',
    }
  }
  return endingOfSystem(error, url)
}

const ANSWERS: Record<string, Ending> = {
  'price above the ceiling': {
    code: EXIT.notPaid,
    sentence:
      'The price is above the ceiling, and nothing was paid. Raise --max-sats, or take a smaller plan: `mayfly catalog` has the prices.',
  },
  'invoice disagrees': {
    code: EXIT.notPaid,
    sentence:
      'The invoice is not what the quote says, so nothing was paid. Do not trust that service.',
  },
  'order expired': {
    code: EXIT.notPaid,
    sentence: 'The quote ended before it was paid. Run the command again for a new one.',
  },
  'order refunded': {
    code: EXIT.gone,
    sentence:
      'The service could not deliver what was paid, and its operator has paid it back. Buy it anew.',
  },
  'already delivered': {
    code: EXIT.gone,
    sentence:
      'The capability was delivered before, and is not handed out again. `mayfly list` shows what is saved here.',
  },
  'proof of payment required': {
    code: EXIT.failed,
    sentence:
      'The key of this purchase came from two addresses and could be guessed, so the service delivers it to proof of payment alone. Pay nothing again: the operator can deliver it by the payment hash.',
  },
  'checkout unavailable': {
    code: EXIT.unreachable,
    sentence:
      'The service cannot sell at the moment: its Lightning node is away. Nothing was paid; try again later.',
  },
  'invalid plan': {
    code: EXIT.failed,
    sentence: 'That plan is not on sale. `mayfly catalog` shows what is.',
  },
  'invalid read limit': {
    code: EXIT.failed,
    sentence: 'The plan has fewer reads than --reads asks for. `mayfly catalog` shows them.',
  },
  'invalid reveal time': {
    code: EXIT.failed,
    sentence:
      'The plan cannot reveal then: --reveal-at is to come, and before the whisper ends. `mayfly catalog` shows how long each lives.',
  },
  'password needed': {
    code: EXIT.usage,
    sentence: 'This whisper needs a password: --password asks for it. Nothing was spent.',
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
    sentence: 'The receipt is not valid: its signature, its form or what it is for is wrong.',
  },
  unauthorized: {
    code: EXIT.gone,
    sentence: 'The service does not know this any more, or the token is another one’s.',
  },
  'ciphertext too large': {
    code: EXIT.failed,
    sentence:
      'It is too large for the plan, and nothing was bought. `mayfly catalog` shows how much each takes.',
  },
  'not found': {
    code: EXIT.gone,
    sentence: 'It is gone: expired, used up, destroyed, or never there.',
  },
}

function endingOfAnswer(error: MayflyError, url: string): Ending {
  const { phrase, status, retryAfterSeconds, cause } = error
  if (phrase === 'service unreachable')
    return unreachable(url, codeOf(cause) || codeOf(causeOf(cause)))
  if (phrase === 'unexpected answer') return strange(url, status)
  if (phrase === 'not revealed') return notRevealed(retryAfterSeconds)
  const known = ANSWERS[phrase]
  if (known) return known
  if (cause instanceof WalletError) return endingOfWallet(cause)
  if (UNFINISHED.includes(phrase)) {
    return {
      code: EXIT.failed,
      sentence: `The purchase is not finished: ${phrase}. Going on pays nothing twice.`,
    }
  }
  const later = retryAfterSeconds === null ? '' : ` Try again in ${retryAfterSeconds} s.`
  const code = status >= 500 ? EXIT.unreachable : status === 404 ? EXIT.gone : EXIT.failed
  return { code, sentence: `The service says: ${phrase}.${later}` }
}

function strange(url: string, status: number): Ending {
  const isElsewhere = status >= 300 && status < 400
  return {
    code: EXIT.unreachable,
    sentence: isElsewhere
      ? `${url} sends its callers elsewhere (HTTP ${status}). Give the address itself, such as the same with https, in --url or MAYFLY_URL.`
      : `${url} answers, but not as a Mayfly of this version does (HTTP ${status}). --url or MAYFLY_URL names another.`,
  }
}

function notRevealed(seconds: number | null): Ending {
  const when = seconds === null ? '' : `: it opens in ${span(seconds)}`
  return { code: EXIT.failed, sentence: `It is not revealed yet${when}. No read was spent.` }
}

/** Phrases of the SDK that leave money where the same command finds it. */
const UNFINISHED = ['payment outcome unknown', 'paid but not collected', 'second payment refused']

function endingOfWallet({ outcome, message }: WalletError): Ending {
  const money =
    outcome === 'not paid'
      ? 'Nothing was paid.'
      : 'Whether it was paid is not known. Asked again, it pays nothing twice.'
  return { code: EXIT.notPaid, sentence: `The wallet did not pay: ${message}. ${money}` }
}

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_SOCKET',
])

function endingOfSystem(error: unknown, url: string): Ending | null {
  if (!(error instanceof Error)) return null
  const isFetch = error instanceof TypeError && error.message === 'fetch failed'
  const code = codeOf(error) || codeOf(error.cause)
  if (isFetch || UNREACHABLE.has(code)) {
    return unreachable(url, code)
  }
  if ('syscall' in error && code !== '') {
    const file = 'path' in error ? String(error.path) : 'A file'
    const why = FILES[code] ?? `cannot be used: ${code}`
    return { code: EXIT.failed, sentence: `${file} ${why}.` }
  }
  return null
}

const FILES: Record<string, string> = {
  ENOENT: 'is not there',
  EACCES: 'cannot be used: its permissions do not let this user',
  EROFS: 'cannot be written: its file system is read-only',
  EEXIST: 'is there already, and is not written over',
  EISDIR: 'is a folder, and a file is wanted',
  ENOTDIR: 'cannot be used: a part of its path is no folder',
  ENOSPC: 'cannot be written: its disk is full',
  EDQUOT: 'cannot be written: the quota of its disk is used up',
}

function unreachable(url: string, code: string): Ending {
  const why = code === '' ? '' : ` (${code})`
  return {
    code: EXIT.unreachable,
    sentence: `${url} does not answer${why}. Is it running? --url or MAYFLY_URL names another.`,
  }
}

const causeOf = (error: unknown): unknown => (error instanceof Error ? error.cause : null)
