/** GATE's statements on a store of three projects with a route each. What a test means is of the one in the middle. */
import assert from 'node:assert/strict'
import { type Statement, UnitRefused } from '../../src/db/db.ts'
import {
  authorizeIntent,
  createGateStore,
  type IntentRow,
  insertIntent,
  insertProject,
  insertRoute,
  type NewIntent,
  type ReceiptRow,
} from '../../src/gate/store.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

export const T = 1_800_000_000_000
/** When an intent of these tests is honoured no more. */
export const END = T + 10_000
export const PROJECTS = ['p', 'q', 'r']
const ROUTE = { routeId: 'render', method: 'POST', pattern: '/render/*', priceSats: 50 }

export const anIntent = (name: string, project: string): NewIntent => ({
  intent_id: name,
  secret_id: 'mine',
  project_id: project,
  route_id: 'render',
  method: 'POST',
  path: '/render/cat',
  body_sha256: 'body',
  request_digest: 'digest',
  amount_sats: 50,
  recipient: `${project}@example.com`,
  network: 'regtest',
  bolt11: `invoice of ${name}`,
  payment_hash: `hash of ${name}`,
  verify_url: 'https://example.com/verify',
  quote_expires_at: T + 1,
  honoured_until: END,
})

export const newReceipt = (
  intent: string,
  project: string,
  receiptId = `receipt of ${intent}`,
) => ({
  receipt_id: receiptId,
  intent_id: intent,
  project_id: project,
  receipt: 'text',
  verified_by: 'preimage' as const,
  authorized_at: T + 1,
  expires_at: T + 2,
})

/** The statements by which this intent is paid. */
export const authorized = (intent: string, project: string) =>
  Object.values(authorizeIntent(newReceipt(intent, project)))

export async function aGateStore(t: After, databaseUrl?: string) {
  const db = await openDatabase(databaseUrl ?? (await aMigratedDatabaseUrl(t)))
  t.after(() => db.close())
  const store = createGateStore(db)
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  for (const [i, projectId] of PROJECTS.entries()) {
    await run(
      insertProject({
        project_id: projectId,
        key_hash: Buffer.from(`key of ${projectId}`),
        credits: 10,
        address: `${projectId}@example.com`,
        verification: 'provider',
        created_at: T - 2 * i,
      }),
      insertRoute(projectId, ROUTE),
    )
  }
  return {
    db,
    run,
    store,
    async insert(intent: NewIntent, limits = { now: T, maxOpen: 9 }): Promise<IntentRow> {
      const statements = insertIntent(intent, limits)
      const { intent: rows } = await db.write({ lockKey: intent.project_id, statements })
      return rows[0] as IntentRow
    },
    row: async (intentId: string) => (await store.intent(intentId)) ?? assert.fail('it is gone'),
    receipt: async (intentId: string): Promise<ReceiptRow> =>
      (await store.receiptOf(intentId)) ?? assert.fail('it is gone'),
    async intents() {
      const rows = await db.read('select intent_id from gate_intent order by intent_id')
      return rows.map(({ intent_id }) => intent_id)
    },
    async credits() {
      const rows = await db.read('select project_id, credits from gate_project')
      return Object.fromEntries(rows.map((row) => [row.project_id, row.credits]))
    },
    /** As some other statement left it. */
    async change(table: string, name: string, columns: Record<string, number | null>) {
      const id = table === 'gate_project' ? 'project_id' : 'intent_id'
      const set = Object.keys(columns).map((column, i) => `${column} = $${i + 2}`)
      const text = `update ${table} set ${set.join(', ')} where ${id} = $1`
      await run({ text, values: [name, ...Object.values(columns)], expect: 1 })
    },
  }
}

/** The name of the statement that refused a unit, or null if it is done. */
export async function refusal(work: Promise<unknown>): Promise<string | null> {
  try {
    await work
    return null
  } catch (error) {
    if (error instanceof UnitRefused) return error.statement
    throw error
  }
}

/** So many more intents like this one. */
export const copiesOf = (intentId: string, count: number): Statement => ({
  text: `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})
    insert into gate_intent select 'copy-' || i, secret_id, project_id, route_id, method, path,
      body_sha256, request_digest, amount_sats, recipient, network, bolt11, 'copy-' || i,
      verify_url, state, quote_expires_at, honoured_until,
      verify_count, next_verify_at from gate_intent, n where intent_id = $1`,
  values: [intentId],
})
