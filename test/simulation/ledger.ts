/** What the clients of a run were told, and the promises that were seen broken. */
import { createHash } from 'node:crypto'
import type { Answer } from './world/service.ts'

/** The promises that a run watches while it goes on. Those of the books are in `books.ts`. */
export const PROMISES = {
  'one key, one invoice': 'every answer to one Idempotency-Key shows the same invoice',
  'nothing to pay for what is paid':
    'a purchase that is paid and not sealed is never answered with another invoice',
  'one delivery':
    'every delivery of one payment has the same body, and no two payments share a capability',
  'paid means delivered': 'whoever has paid collects the capability, whatever was lost on the way',
  'nothing for nothing': 'nobody is handed a capability whose invoice is not paid',
  'extended once':
    'each payment for an extension adds its time once, or buys a new one if the target has ended',
  'an open quote stands':
    'whatever the operator changes, an open quote keeps its price, and what was paid for is what was quoted',
  'a restore loses no payment':
    'what was paid since a backup that is restored is found, or given anew or paid back by the operator',
  'repaired or refunded':
    'what is owed is provisioned or paid back, once, however often and in whichever order it is tried',
  'stored once':
    'an event that was answered with 204 is stored once, and one that was not at most once',
  'reads are counted':
    'a WHISPER is read as often as it was sold, and each read has all of its bytes',
  'pings are counted': 'a ping that was answered with 204 counts once',
  'late only by its own fault':
    'a job that pings in time is never called late, whatever happens to us',
  'a switch opens by silence alone': 'no secret opens while the job of its monitor pings in time',
  'a switch opens by silence': 'once its job has fallen silent, an armed secret opens',
  'an alert is delivered':
    'a destination that has answered its test is told of the next change of the monitor and of the last one, whatever fails, unless it ends or fails for too long',
  'no alert is invented': 'no destination is told of what the history of the monitor does not have',
  'a repeated alert is known by its id':
    'every message about a change has the same id and the same body',
  'alerts come in order':
    'a destination gets one message at a time, and the changes in their order',
  'an alert is signed': 'a message verifies with the secret that the owner was given last',
  'a destination that ended is left alone':
    'what the owner has taken away, or what has answered 410, gets nothing but the attempt that was under way',
  'one request, one invoice':
    'every answer of GATE to one key shows the same invoice for the same request, and no invoice is shown for two',
  'an invoice as agreed':
    "an invoice of GATE is one of the project's own address, over the price of its route",
  'a receipt for a payment':
    'a receipt is signed only for a preimage that was paid for, or when the provider has called the invoice paid',
  'paid means a receipt':
    'whoever proves a payment of GATE is let in, whatever was lost, and is never asked for another payment',
  'one payment, one receipt':
    'every proof of a payment gets the same receipt, and another one only after that was given back',
  'a receipt opens its own request':
    'a receipt says what was paid for, and lets in no other request',
  'a receipt verifies':
    'every receipt verifies by the published keys, also after the secret has changed',
  'one payment, one run':
    'a payment runs the handler of a project once, and again only after it has failed',
  'an old capability ends': "a project's old capability opens nothing once it has a new one",
  'answers make sense': 'no client is refused what it may ask for, and no request fails inside',
  'rest is reached': 'once the faults are over, every client comes to its end',
} as const

export type PromiseName = keyof typeof PROMISES

export type Violation = { promise: PromiseName | 'the books balance'; what: string }

export type Ledger = ReturnType<typeof createLedger>

export function createLedger({ isTraced, now }: { isTraced: boolean; now: () => number }) {
  const hash = createHash('sha256')
  const ledger = {
    violations: [] as Violation[],
    break(promise: Violation['promise'], what: string): void {
      ledger.note(`BROKEN ${promise}: ${what}`)
      ledger.violations.push({ promise, what })
    },
    /** Bodies of 200 answers, by payment hash. */
    delivered: new Map<string, Set<string>>(),
    /** What each payment for an extension was told: the target, and its new end. */
    extended: new Map<string, { publicId: string; expiresAt: string }>(),
    /** The ends of what was bought to be extended, as they were sold, by its public id. */
    sold: new Map<string, string>(),
    /** What owners have asked to destroy. */
    destroyed: new Set<string>(),
    /** How often the operator has restored a backup. */
    restores: 0,
    /** The payment hashes of orders that a restored backup does not know. */
    lost: new Set<string>(),
    /** What a restored backup does not know of what was sold, by its public id. */
    gone: new Set<string>(),
    /** The payment hashes of what was collected since the backup, and may be once more. */
    uncollected: new Set<string>(),
    /** The ids of orders, by payment hash. Null where the buyer has a credential instead. */
    orderIds: new Map<string, string | null>(),
    /** What the operator gave to buyers, and the payment hashes of those who were paid back. */
    handedOut: new Map<string, string>(),
    paidBack: new Set<string>(),
    /** Bodies that an inbox accepted with 204, and all that were sent to it, by its public id. */
    stored: new Map<string, { accepted: Set<string>; sent: Set<string> }>(),
    reads: new Map<string, { sold: number; asked: number; answered: number }>(),
    /** Pings that a monitor accepted with 204, and all that were sent, by its public id. */
    pinged: new Map<string, { accepted: number; sent: number }>(),
    trace: [] as string[],
    /** Notes an answer, for the run's fingerprint and for a reader of its trace. */
    note(line: string): void {
      const timed = `${now().toFixed(3)} ${line}`
      hash.update(timed)
      if (isTraced) ledger.trace.push(timed)
    },
    noteAnswer(what: string, answer: Answer | null): void {
      ledger.note(
        answer ? `${what}: ${answer.status} ${answer.text.slice(0, 400)}` : `${what}: lost`,
      )
    },
    fingerprint: (): string => hash.copy().digest('hex').slice(0, 16),
  }
  return ledger
}
