/** Two whole servers in this process, on one PostgreSQL database. */
import type { TestContext } from 'node:test'
import { Client } from 'pg'
import { payAt } from './payer.ts'
import { startServer } from './server.ts'
import { until } from './until.ts'

export type Fleet = Awaited<ReturnType<typeof twoInstances>>

/** Starts two instances, which stop when the test ends. */
export async function twoInstances(
  t: Pick<TestContext, 'after'>,
  database: string,
  environment: Record<string, string> = {},
) {
  const client = new Client(database)
  await client.connect()
  t.after(() => client.end())
  const settings = {
    MAYFLY_DATABASE_URL: database,
    MAYFLY_SECRET: '5eed'.repeat(16),
    ...environment,
  }
  const [a, b] = await Promise.all([startServer(t, settings), startServer(t, settings)])
  let turn = 0
  const sql = async (text: string, ...values: unknown[]): Promise<Record<string, unknown>[]> =>
    (await client.query(text, values)).rows
  return {
    a,
    b,
    /** Chooses the instances in turn, like a load balancer. */
    next: () => (turn++ % 2 === 0 ? a : b),
    sql,
    /** Pays through one instance, and resolves when the order is settled. */
    async pay({ bolt11, orderId }: { bolt11: string; orderId: string }): Promise<string> {
      const preimage = await payAt(a.url, bolt11)
      await until('the order is settled', async () => {
        const [order] = await sql('select state from purchase_order where order_id = $1', orderId)
        return order?.state === 'settled'
      })
      return preimage
    },
    /** Ends the connections with this name, like an administrator. */
    async cut(name: string): Promise<void> {
      await sql(
        'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1',
        name,
      )
    },
  }
}
