import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { createInstruments } from '../../src/metrics/instruments.ts'
import { countEvents } from '../../src/metrics/payments.ts'

test('each event of payment and GATE is counted by its facts, and passed on', async () => {
  const registry = new Registry()
  const passed: string[] = []
  const write = ({ event }: { event: string }): void => void passed.push(event)
  const log = countEvents(createInstruments(registry))({ info: write, warn: write, error: write })
  const product = 'catch'
  const settled = { event: 'order.settled', product, by: 'node', amountSats: 100 }
  log.info({ event: 'order.quoted', product })
  log.info(settled)
  log.info({ ...settled, renewal: 'extended' })
  log.info({ event: 'order.delivered', product })
  log.info({ event: 'order.dead', product })
  log.error({ event: 'order.paid_unfulfilled', product })
  log.error({ event: 'order.invoice_unknown' })
  log.error({ event: 'order.proven_unknown' })
  for (const event of ['gate.quoted', 'gate.authorized', 'gate.given_back']) log.info({ event })
  log.error({ event: 'gate.unhonoured' })
  log.warn({ event: 'order.lookup_failed' })
  const counted = (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
  assert.deepEqual(counted.sort(), [
    'mayfly_gate_authorized_total 1',
    'mayfly_gate_give_backs_total 1',
    'mayfly_gate_quoted_total 1',
    'mayfly_gate_unhonoured_total 1',
    'mayfly_invoice_unknown_total 1',
    'mayfly_orders_delivered_total{product="catch"} 1',
    'mayfly_orders_expired_total{product="catch"} 1',
    'mayfly_orders_paid_unfulfilled_total{product="catch"} 1',
    'mayfly_orders_proven_unknown_total 1',
    'mayfly_orders_quoted_total{product="catch"} 1',
    'mayfly_orders_settled_total{product="catch",by="node"} 2',
    'mayfly_renewals_total{product="catch",renewal="extended"} 1',
    'mayfly_settled_sats_total{product="catch"} 200',
  ])
  assert.equal(passed.length, 13)
})
