/**
 * What each phrase of the service and of the SDK is on the command line: its exit code and what to do next. The type
 * demands an entry for each of the SDK. A phrase of the service without one has the exit code of its status, and the
 * service's own advice.
 */
import type { SDK_PHRASES } from '../client/errors.ts'
import type { Phrase } from '../protocol/errors.ts'

/** The exit codes of all commands. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notPaid: 3,
  gone: 4,
  later: 5,
  interrupted: 130,
} as const

/** The meaning of each exit code, for the help. docs/cli.md has them too. */
export const EXIT_MEANINGS: Record<keyof typeof EXIT, string> = {
  ok: 'done',
  failed: 'refused or failed; the sentence on stderr says what to do',
  usage: 'an argument, an option or a setting is wrong; nothing was done',
  notPaid: 'not paid: the price is above the ceiling, the wallet refused, or time ran out',
  gone: 'not there: expired, used up, destroyed or unknown',
  later:
    'not now: the service, its store, its node or a receiver does not answer, or takes no more for a while',
  interrupted: 'interrupted by Ctrl-C or SIGTERM',
}

/** A sentence, where the exit code is that of the status. A missing sentence depends on more than the phrase (exit.ts). */
export type Entry = string | { code: number; sentence?: string }

const failed = { code: EXIT.failed }
const notPaid = { code: EXIT.notPaid }
const usage = { code: EXIT.usage }

const OF_SERVICE: Partial<Record<Phrase, Entry>> = {
  'invalid plan': 'That plan is not on sale. `mayfly catalog` shows what is.',
  'invalid switch':
    'That switch cannot be bound, and nothing was bought. Its monitor must be pinged in time, its last run must not have failed, and its time and its pings must last longer than the plan of the whisper: `mayfly extend` makes it last longer.',
  'ciphertext too large':
    'The content is too large for the plan, so nothing was bought. `mayfly catalog` shows the limit of each plan.',
  'invoice expired': { ...notPaid, sentence: 'The invoice has expired. Ask for a new one.' },
  'order expired': {
    ...notPaid,
    sentence: 'The quote expired before it was paid. Run the command again for a new one.',
  },
  'proof of payment required': {
    ...failed,
    sentence:
      'The service asks for proof of this payment: its key was used from two addresses, or what it was to extend had ended. Do not pay again. The operator can deliver the order by its payment hash.',
  },
  unauthorized:
    'The service takes this token no more: what it belongs to has ended or is suspended, or its owner has replaced the token. To remove it here: mayfly forget <name>',
  'not found':
    'It does not exist: it has expired, is used up or destroyed, or never existed. If it is saved here: mayfly forget <name>',
  'cannot be extended': { code: EXIT.gone },
  'wrong preimage': failed,
  'alerts unavailable': failed,
}

const OF_SDK: Record<(typeof SDK_PHRASES)[number], Exclude<Entry, string>> = {
  'service unreachable': { code: EXIT.later },
  'unexpected answer': { code: EXIT.later },
  'price above the ceiling': notPaid,
  'price disagrees': {
    ...notPaid,
    sentence: 'The service asks for another price than its catalogue says, so nothing was paid.',
  },
  'invoice disagrees': {
    ...notPaid,
    sentence:
      'The invoice does not match the quote, so nothing was paid. Do not trust this service.',
  },
  'payment failed': { ...notPaid, sentence: 'The wallet did not pay, so nothing was paid.' },
  'payment outcome unknown': failed,
  'paid but not collected': failed,
  'second payment refused': failed,
  'no event in time': { ...failed, sentence: 'No webhook arrived within --timeout.' },
  'inbox ended': {
    code: EXIT.gone,
    sentence: 'No webhook can come any more: the inbox is full, expired or destroyed.',
  },
  'nothing to send': {
    ...usage,
    sentence: 'There is nothing to send: the content is empty. Nothing was bought.',
  },
  'invalid share code': {
    ...usage,
    sentence: 'That is neither a share code nor the name of a saved whisper. Nothing was spent.',
  },
  'password needed': {
    ...usage,
    sentence: 'This whisper needs a password: use --password-file. Nothing was spent.',
  },
  'invalid receipt': {
    ...failed,
    sentence: 'The receipt is not valid: its signature, its form or its purpose is wrong.',
  },
}

export const PHRASES: Readonly<Record<string, Entry>> = { ...OF_SERVICE, ...OF_SDK }
