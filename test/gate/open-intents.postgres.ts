import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inARow } from '../../src/db/unit.ts'
import { insertIntent, insertProject } from '../../src/gate/store.ts'
import { aPool, inTransaction } from '../support/transactions.ts'

const MOST = 20

test('the open intents of a project are limited exactly on PostgreSQL, where transactions do not see each other', async () => {
  const pool = await aPool()
  for (const projectId of ['gate_project_a', 'gate_project_b']) {
    const project = insertProject({
      project_id: projectId,
      key_hash: Buffer.from(projectId),
      address: 'us@example.com',
      verification: 'preimage',
      credits: 1,
      created_at: 0,
    })
    await inTransaction(pool, [project])
  }
  const opened = await Promise.all(
    Array.from({ length: 100 }, (_, i) => inTransaction(pool, anIntent(i, 'gate_project_a'))),
  )
  const other = await inTransaction(pool, anIntent(100, 'gate_project_b'))
  await pool.end()
  assert.equal(opened.filter(Boolean).length, MOST)
  assert.ok(other, 'each project is limited for itself')
})

const anIntent = (i: number, projectId: string) =>
  inARow(
    insertIntent(
      {
        intent_id: `gate_intent_${i}`,
        secret_id: '',
        project_id: projectId,
        route_id: 'render',
        method: 'POST',
        path: '/render',
        body_sha256: '',
        request_digest: '',
        amount_sats: 1,
        recipient: 'us@example.com',
        network: 'regtest',
        bolt11: '',
        payment_hash: `hash ${i}`,
        verify_url: null,
        quote_expires_at: 10,
        honoured_until: 10,
      },
      { now: 0, maxOpen: MOST },
    ),
  )
