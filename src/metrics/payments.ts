/** Metrics of payments. They count the events that payment and GATE log. */
import type { Log } from '../lib/log.ts'
import type { Instruments } from './instruments.ts'

type Facts = Parameters<Log['info']>[0]
/** Counts an event, by its name. */
type EventCounters = Record<string, (facts: Facts) => void>

/** Makes a log that counts events and passes them on to another log. */
export function countEvents(instruments: Instruments): (log: Log) => Log {
  const counters: EventCounters = { ...orderCounters(instruments), ...gateCounters(instruments) }
  return (log) => {
    const counted =
      (write: Log['info']): Log['info'] =>
      (facts) => {
        counters[facts.event]?.(facts)
        write(facts)
      }
    return {
      info: counted((facts) => log.info(facts)),
      warn: counted((facts) => log.warn(facts)),
      error: counted((facts) => log.error(facts)),
    }
  }
}

function orderCounters({ counter }: Instruments): EventCounters {
  const labels = ['product']
  const quoted = counter('orders_quoted_total', 'Orders that got their invoice.', labels)
  const settled = counter('orders_settled_total', 'Orders paid and provisioned, by way.', [
    'product',
    'by',
  ])
  const renewals = counter('renewals_total', 'Paid extensions, by what became of them.', [
    'product',
    'renewal',
  ])
  const sats = counter('settled_sats_total', 'What settled orders paid, in satoshis.', labels)
  const delivered = counter('orders_delivered_total', 'Capabilities handed out.', labels)
  const expired = counter('orders_expired_total', 'Orders not paid in time.', labels)
  const unfulfilled = counter(
    'orders_paid_unfulfilled_total',
    'Orders paid that could not be provisioned: somebody is owed something.',
    labels,
  )
  const unknownInvoice = counter(
    'invoice_unknown_total',
    'Look-ups of invoices that the node has never seen.',
  )
  const unknownOrder = counter(
    'orders_proven_unknown_total',
    'Payments proven to us whose order the store does not know: somebody is owed something.',
  )
  return {
    'order.quoted': (facts) => quoted.inc(productOf(facts)),
    'order.settled': (facts) => {
      settled.inc({ ...productOf(facts), by: String(facts.by) })
      sats.inc(productOf(facts), Number(facts.amountSats))
      const { renewal } = facts
      if (renewal !== undefined) renewals.inc({ ...productOf(facts), renewal: String(renewal) })
    },
    'order.delivered': (facts) => delivered.inc(productOf(facts)),
    'order.dead': (facts) => expired.inc(productOf(facts)),
    'order.paid_unfulfilled': (facts) => unfulfilled.inc(productOf(facts)),
    'order.invoice_unknown': () => unknownInvoice.inc(),
    'order.proven_unknown': () => unknownOrder.inc(),
  }
}

function gateCounters({ counter }: Instruments): EventCounters {
  const intents = counter('gate_intents_total', 'Intents of GATE, quoted and authorized.', ['step'])
  const givenBack = counter(
    'gate_give_backs_total',
    'Receipts of GATE that were given back: a project failed a paid request.',
  )
  const unhonoured = counter(
    'gate_unhonoured_total',
    'Payments of GATE whose request failed three times: somebody is owed something.',
  )
  return {
    'gate.quoted': () => intents.inc({ step: 'quoted' }),
    'gate.authorized': () => intents.inc({ step: 'authorized' }),
    'gate.given_back': () => givenBack.inc(),
    'gate.unhonoured': () => unhonoured.inc(),
  }
}

const productOf = ({ product }: Facts) => ({ product: String(product) })
