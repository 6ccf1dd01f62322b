/** Metrics of payments. They count the events that payment and GATE log. */
import type { Log } from '../lib/log.ts'
import type { Instruments } from './instruments.ts'

type Facts = Parameters<Log['info']>[0]
/** The labels are facts of the event: without one of them it is not counted. `amount` is the fact to add, not 1. */
type Counted = [event: string, name: string, help: string, labels?: string[], amount?: string]

const OWED = 'somebody is owed something.'

const COUNTED: readonly Counted[] = [
  ['order.quoted', 'orders_quoted_total', 'Orders that got their invoice.', ['product']],
  ['order.settled', 'orders_settled_total', 'Orders paid and provisioned.', ['product', 'by']],
  ['order.settled', 'renewals_total', 'Extensions paid.', ['product', 'renewal']],
  ['order.settled', 'settled_sats_total', 'Satoshis paid.', ['product'], 'amountSats'],
  ['order.delivered', 'orders_delivered_total', 'Capabilities handed out.', ['product']],
  ['order.dead', 'orders_expired_total', 'Orders not paid in time.', ['product']],
  [
    'order.paid_unfulfilled',
    'orders_paid_unfulfilled_total',
    `Orders paid that could not be provisioned: ${OWED}`,
    ['product'],
  ],
  ['order.invoice_unknown', 'invoice_unknown_total', 'Invoices that the node has never seen.'],
  [
    'order.proven_unknown',
    'orders_proven_unknown_total',
    `Payments proven to us whose order the store does not know: ${OWED}`,
  ],
  ['gate.quoted', 'gate_quoted_total', 'Intents of GATE that got their invoice.'],
  ['gate.authorized', 'gate_authorized_total', 'Intents of GATE that were paid.'],
  ['gate.given_back', 'gate_give_backs_total', 'Paid requests of GATE that a project failed.'],
  ['gate.unhonoured', 'gate_unhonoured_total', `Payments of GATE that failed thrice: ${OWED}`],
]

/** Makes a log that counts events and passes them on to another log. */
export function countEvents({ counter }: Instruments): (log: Log) => Log {
  const counted = COUNTED.map(([event, name, help, labels = [], amount]) => {
    const total = counter(name, help, labels)
    return (facts: Facts): void => {
      if (facts.event !== event || labels.some((label) => facts[label] === undefined)) return
      const values = labels.map((label) => String(facts[label]))
      total.labels(...values).inc(amount === undefined ? 1 : Number(facts[amount]))
    }
  })
  return (log) => {
    const counting =
      (write: Log['info']): Log['info'] =>
      (facts) => {
        for (const count of counted) count(facts)
        write(facts)
      }
    return {
      info: counting((facts) => log.info(facts)),
      warn: counting((facts) => log.warn(facts)),
      error: counting((facts) => log.error(facts)),
    }
  }
}
