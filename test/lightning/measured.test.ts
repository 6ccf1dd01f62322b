import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Lightning, UnknownInvoice } from '../../src/lightning/lightning.ts'
import { measuredLightning } from '../../src/lightning/measured.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'

const NODE = { network: 'regtest', synced: true, nodeId: null } as const

test('a node that fails is counted and neither up nor in sync, and one without an invoice has answered', async () => {
  const metrics = createMetrics()
  let failure: Error | null = new UnknownInvoice()
  const answer = async (): Promise<never> => {
    throw failure
  }
  const node = measuredLightning(
    {
      info: () => (failure === null ? Promise.resolve(NODE) : answer()),
      createInvoice: answer,
      lookupInvoice: answer,
    } as unknown as Lightning,
    metrics.node,
  )
  const shown = async (name: string): Promise<number> =>
    Number(new RegExp(`^mayfly_${name} (.+)$`, 'm').exec(await metrics.text())?.[1])
  await assert.rejects(node.lookupInvoice('00'.repeat(32)), UnknownInvoice)
  assert.equal(await shown('node_errors_total{call="lookup_invoice"}'), 0)
  failure = null
  await node.info()
  assert.deepEqual([await shown('node_up'), await shown('node_synced')], [1, 1])
  failure = new Error('the node is away')
  await assert.rejects(node.lookupInvoice('00'.repeat(32)), /away/)
  await assert.rejects(node.info(), /away/)
  for (const call of ['lookup_invoice', 'info']) {
    assert.equal(await shown(`node_errors_total{call="${call}"}`), 1)
    assert.ok((await shown(`node_call_duration_seconds_count{call="${call}"}`)) > 1)
  }
  assert.deepEqual([await shown('node_up'), await shown('node_synced')], [0, 0])
})
