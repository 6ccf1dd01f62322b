/**
 * One table: what each phrase of the service and of the SDK is on the command line. The type
 * demands an entry for each.
 * The sentence says what to do next. Null stands for one that depends on more than the phrase (exit.ts).
 */

import type { MayflyPhrase } from '../client/index.ts'

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

/** The meaning of each exit code, for the help and for docs/cli.md. */
export const EXIT_MEANINGS: Record<keyof typeof EXIT, string> = {
  ok: 'done',
  failed: 'refused or failed; the sentence on stderr says what to do',
  usage: 'an argument, an option or a setting is wrong; nothing was done',
  notPaid: 'not paid: the price is above the ceiling, the wallet refused, or time ran out',
  gone: 'not there: expired, used up, destroyed or unknown',
  later:
    'not now: the service, its node or a receiver does not answer, or takes no more for a while',
  interrupted: 'interrupted by Ctrl-C or SIGTERM',
}

type Entry = readonly [code: number, sentence: string | null]

const BUG = 'That is a mistake of this program, not yours: the service did not take its request.'

export const PHRASES: Record<MayflyPhrase, Entry> = {
  // What was typed.
  'invalid plan': [EXIT.usage, 'That plan is not on sale. `mayfly catalog` shows what is.'],
  'invalid read limit': [
    EXIT.usage,
    'The plan allows fewer reads than --reads asks for. `mayfly catalog` shows how many.',
  ],
  'invalid reveal time': [
    EXIT.usage,
    '--reveal-at must be in the future, and before the whisper ends. `mayfly catalog` shows how long each plan lasts.',
  ],
  'invalid switch': [
    EXIT.usage,
    'That switch cannot be bound, and nothing was bought. Its monitor must be pinged in time, its last run must not have failed, and its time and its pings must last longer than the plan of the whisper: `mayfly extend` makes it last longer.',
  ],
  'ciphertext too large': [
    EXIT.usage,
    'The content is too large for the plan, so nothing was bought. `mayfly catalog` shows the limit of each plan.',
  ],
  'invalid ciphertext': [EXIT.usage, 'There is nothing to send: the content is empty.'],
  'invalid settings': [EXIT.usage, null],
  'invalid destinations': [EXIT.usage, null],
  'invalid query': [EXIT.usage, null],
  'invalid request body': [EXIT.usage, null],
  'invalid binding': [
    EXIT.usage,
    'The project has no such route, or its method or path is another one.',
  ],
  'malformed proof': [EXIT.usage, 'A preimage is 64 hex digits, in lower case.'],
  'password needed': [
    EXIT.usage,
    'This whisper needs a password: use --password-file. Nothing was spent.',
  ],
  'nothing to send': [
    EXIT.usage,
    'There is nothing to send: the content is empty. Nothing was bought.',
  ],
  'invalid share code': [
    EXIT.usage,
    'That is neither a share code nor the name of a saved whisper. Nothing was spent.',
  ],
  // What this program sends itself.
  'unsupported media type': [EXIT.failed, BUG],
  'invalid idempotency key': [EXIT.failed, BUG],
  'unknown payment protocol': [EXIT.failed, BUG],
  'invalid receipt option': [EXIT.failed, BUG],
  'method not allowed': [EXIT.failed, BUG],
  'payment required': [EXIT.failed, BUG],
  'invalid payment credential': [EXIT.failed, BUG],
  'invalid L402 credential': [EXIT.failed, BUG],
  'cross-site request refused': [EXIT.failed, BUG],
  'foreign origin': [EXIT.failed, BUG],
  'idempotency key reused with a different request': [
    EXIT.failed,
    'The key of this purchase belongs to another one. `mayfly list` shows both.',
  ],
  'request too large': [EXIT.usage, 'The request is too large for the service.'],
  // The payment.
  'price above the ceiling': [EXIT.notPaid, null],
  'price disagrees': [
    EXIT.notPaid,
    'The service asks for another price than its catalogue says, so nothing was paid.',
  ],
  'payment failed': [EXIT.notPaid, null],
  'payment outcome unknown': [EXIT.failed, null],
  'paid but not collected': [EXIT.failed, null],
  'second payment refused': [EXIT.failed, null],
  'invoice disagrees': [
    EXIT.notPaid,
    'The invoice does not match the quote, so nothing was paid. Do not trust this service.',
  ],
  'invoice expired': [EXIT.notPaid, 'The invoice has expired. Ask for a new one.'],
  'order expired': [
    EXIT.notPaid,
    'The quote expired before it was paid. Run the command again for a new one.',
  ],
  'order not found': [
    EXIT.gone,
    'The service does not know this purchase. If it was paid, do not pay again: its operator can restore it from the payment hash.',
  ],
  'order refunded': [
    EXIT.gone,
    'The operator of the service has refunded this order, so it is not delivered any more. You can buy it again.',
  ],
  'already delivered': [
    EXIT.gone,
    'The capability was already delivered, and is never delivered twice. `mayfly list` shows what is saved here.',
  ],
  'proof of payment required': [
    EXIT.failed,
    'The service asks for proof of this payment: its key was used from two addresses, or what it was to extend had ended. Do not pay again. The operator can deliver the order by its payment hash.',
  ],
  // What was bought.
  unauthorized: [
    EXIT.gone,
    'The service takes this token no more: what it belongs to has ended or is suspended, or its owner has replaced the token. To remove it here: mayfly forget <name>',
  ],
  'catch unavailable': [
    EXIT.gone,
    'The inbox takes no webhooks: it is suspended, used up, expired or destroyed. `mayfly status` shows which.',
  ],
  'not found': [
    EXIT.gone,
    'It does not exist: it has expired, is used up or destroyed, or never existed. If it is saved here: mayfly forget <name>',
  ],
  'inbox ended': [
    EXIT.gone,
    'No webhook can come any more: the inbox is full, expired or destroyed.',
  ],
  'no event in time': [EXIT.failed, 'No webhook arrived within --timeout.'],
  'not revealed': [EXIT.failed, null],
  'cannot be extended': [
    EXIT.gone,
    'It has ended, is used up or suspended, or would last longer than ten years. Nothing was paid. `mayfly buy` buys a new one.',
  ],
  // GATE.
  'invalid project capability': [
    EXIT.gone,
    'The key of the project is wrong, was replaced, or the project is suspended. Nothing was spent.',
  ],
  'intent mismatch': [
    EXIT.gone,
    'The project has no such intent. Nothing was spent; do not pay again.',
  ],
  'wrong preimage': [
    EXIT.failed,
    'The intent is paid, and this is not its preimage. Do not pay again.',
  ],
  'payment not verified': [EXIT.notPaid, 'The payment is not proven yet. Do not pay again.'],
  'no credits': [EXIT.failed, 'The project has no credits left. Its operator can add some.'],
  'give-back refused': [
    EXIT.failed,
    'The receipt is of another intent, or its request failed three times.',
  ],
  'invalid receipt': [
    EXIT.failed,
    'The receipt is not valid: its signature, its form or its purpose is wrong.',
  ],
  // The service.
  'service unreachable': [EXIT.later, null],
  'unexpected answer': [EXIT.later, null],
  'rate limited': [EXIT.later, 'The service takes no more of these from here for now.'],
  'sold out': [
    EXIT.later,
    'The service sells no more today, or no more to this network. Nothing was paid.',
  ],
  'checkout unavailable': [
    EXIT.later,
    'The service cannot sell at the moment, because its Lightning node does not answer. Nothing was paid.',
  ],
  'service unavailable': [
    EXIT.later,
    'The service cannot reach its store, or is full. What is paid is kept.',
  ],
  'request timeout': [EXIT.later, 'The request did not reach the service in time.'],
  'internal error': [EXIT.later, 'The service failed. What is paid is kept.'],
  'not ready': [EXIT.later, 'The service is starting or stopping.'],
  'alerts unavailable': [EXIT.failed, 'The operator of this service sends no alerts.'],
  'simulator is local': [
    EXIT.failed,
    'This service tries things out on its own machine alone. Call it by localhost, without a proxy.',
  ],
  'network refused': [EXIT.failed, 'The operator takes no orders from this network.'],
}
