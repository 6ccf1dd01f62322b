/**
 * A real LND with a real payer: what a quote adds to the node's own time for an invoice, and how soon a
 * buyer who polls learns of the settlement.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Dispatcher, Pool } from 'undici'
import type { LndNode } from '../../test/support/nodes/lnd-node.ts'
import { missingNodes, startTestbed, type Testbed } from '../../test/support/nodes/testbed.ts'
import { until } from '../../test/support/until.ts'
import type { Engine } from '../engine.ts'
import { load, type Measured, median } from '../load.ts'
import { type Program, startMayfly } from '../program.ts'

// All rounds end before the service first looks up its open orders, 15 seconds after its start.
const ROUNDS = 3
const SECONDS = 2
const PAYMENTS = 20
const QUOTE = {
  method: 'POST',
  path: '/api/payments/catch',
  headers: { 'content-type': 'application/json' },
  body: '{"planId":"spark"}',
} as const

export async function lndRow(engine: Engine): Promise<string[]> {
  const missing = await missingNodes()
  if (missing) return [`not measured: ${missing}`]
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-bench-'))
  const testbed = await startTestbed()
  try {
    const macaroon = join(folder, 'mayfly.macaroon')
    const permissions = ['invoices:read', 'invoices:write', 'info:read']
    await writeFile(macaroon, await testbed.alice.bake(...permissions))
    const query = new URLSearchParams({ macaroon, cert: testbed.alice.certificateFile })
    const environment = { MAYFLY_LIGHTNING_URL: `lnd+${testbed.alice.baseUrl}?${query}` }
    /** Runs a row on a new store, so that the open orders of another row do not slow it down. */
    async function measured(row: (mayfly: Program) => Promise<string>): Promise<string> {
      const mayfly = await startMayfly(engine, environment)
      try {
        return await row(mayfly)
      } finally {
        await mayfly.stop()
      }
    }
    return [
      await measured((mayfly) => settlement(mayfly, testbed)),
      await measured((mayfly) => quotes(mayfly, testbed.alice, 1)),
      await measured((mayfly) => quotes(mayfly, testbed.alice, 32)),
    ]
  } finally {
    await testbed.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Mayfly's quote and the node's own AddInvoice, in turn. The ratio compares their times. */
async function quotes(mayfly: Program, node: LndNode, connections: number): Promise<string> {
  const quote = (seconds: number) =>
    load(
      {
        ...QUOTE,
        url: mayfly.url + QUOTE.path,
        connections,
        seconds,
        eachRequest: (request) => ({
          ...request,
          headers: { ...request.headers, 'idempotency-key': randomUUID() },
        }),
      },
      402,
    )
  const addInvoice = (seconds: number) =>
    load(
      {
        url: `${node.baseUrl}/v1/invoices`,
        connections,
        seconds,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'grpc-metadata-macaroon': node.macaroon('admin'),
        },
        body: JSON.stringify({ value_msat: '100000', memo: 'Mayfly CATCH spark', expiry: '900' }),
      },
      200,
    )
  await quote(1)
  await addInvoice(1)
  const [ours, theirs]: [Measured[], Measured[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    theirs.push(await addInvoice(SECONDS))
    ours.push(await quote(SECONDS))
  }
  const [our, their] = [median(ours), median(theirs)]
  const milliseconds = ({ perSecond }: Measured) => ((connections * 1000) / perSecond).toFixed(2)
  return (
    `quote, ${connections} connection${connections === 1 ? '' : 's'}: ` +
    `${our.perSecond}/s, ${milliseconds(our)} ms, p99 ${our.p99} ms, ${our.errors} errors; ` +
    `AddInvoice ${their.perSecond}/s, ${milliseconds(their)} ms, p99 ${their.p99} ms; ` +
    `${(their.perSecond / our.perSecond).toFixed(2)} × its time; ${mayfly.memoryMib()} MiB`
  )
}

/**
 * The time from the node's report of a settlement to the 200 of a client that polls without a pause, on
 * one connection. This process has its own stream of the node's reports and runs the client, so one clock
 * measures both.
 */
async function settlement(mayfly: Program, { alice, pay }: Testbed): Promise<string> {
  const told = await followInvoices(alice)
  const client = new Pool(mayfly.url, { connections: 1 })
  const ask = async (request: Dispatcher.RequestOptions) => {
    const { statusCode, body } = await client.request(request)
    return { statusCode, text: await body.text() }
  }
  const waits: number[] = []
  let polls = 0
  for (let i = 0; i < PAYMENTS; i++) {
    const headers = { ...QUOTE.headers, 'idempotency-key': randomUUID() }
    const quote = JSON.parse((await ask({ ...QUOTE, headers })).text) as {
      orderId: string
      bolt11: string
      paymentHash: string
    }
    const paid = pay(quote.bolt11)
    for (;;) {
      const { statusCode } = await ask({ method: 'GET', path: `/api/payments/${quote.orderId}` })
      polls++
      if (statusCode === 200) break
      if (statusCode !== 402) throw new Error(`the poll got ${statusCode}`)
    }
    const seenAt = performance.now()
    await paid
    waits.push(seenAt - (await told.settledAt(quote.paymentHash)))
  }
  await client.close()
  await told.close()
  const sorted = waits.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.ceil(share * (PAYMENTS - 1))]?.toFixed(1)
  return (
    `settled → a waiting poll sees it, ${PAYMENTS} payments: ` +
    `median ${at(0.5)} ms, least ${at(0)} ms, most ${at(1)} ms (${polls} polls)`
  )
}

/** When the node reported each settlement, by payment hash. */
async function followInvoices(node: LndNode) {
  const settled = new Map<string, number>()
  let events = 0
  const pool = new Pool(node.baseUrl, {
    connect: { ca: node.certificate() },
    headersTimeout: 0,
    bodyTimeout: 0,
  })

  async function follow(): Promise<void> {
    // The headers of the answer come with the first event.
    const { body } = await pool.request({
      method: 'GET',
      path: '/v1/invoices/subscribe',
      headers: { 'grpc-metadata-macaroon': node.macaroon('admin') },
    })
    for await (const line of createInterface({ input: body })) {
      const now = performance.now()
      events++
      const { result } = JSON.parse(line) as { result: { r_hash: string; state: string } }
      const hash = Buffer.from(result.r_hash, 'base64').toString('hex')
      if (result.state === 'SETTLED') settled.set(hash, now)
    }
  }

  // The stream ends with an error when its connection is closed.
  const ended = follow().catch(() => {})
  await until('the stream of invoices', async () => {
    await node.post('/v1/invoices', { value: '1' })
    return events > 0
  })
  return {
    settledAt: (paymentHash: string) =>
      until('word of the settlement', () => settled.get(paymentHash)),
    async close() {
      await pool.destroy()
      await ended
    },
  }
}
