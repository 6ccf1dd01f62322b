/**
 * A bystander of the attack, on its own thread. It requests `/health` and the catalogue all the time, buys
 * from time to time, and repeats a paid purchase.
 */
import { randomUUID } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { l402Authorization } from '../../test/support/payer.ts'
import { buyInbox, fetchFrom, pay } from './target.ts'

/** Milliseconds between two requests, and between two purchases. */
const LOOK_MS = 25
const BUY_MS = 1_500
/** An answer that takes longer counts as missing. */
const PATIENCE_MS = 20_000

export type Seen = {
  health: number[]
  catalog: number[]
  purchases: { tried: number; done: number }
  repeats: { tried: number; done: number }
}

const { url } = workerData as { url: string }
const seen: Seen = {
  health: [],
  catalog: [],
  purchases: { tried: 0, done: 0 },
  repeats: { tried: 0, done: 0 },
}
/** Each request comes from another network, so that the bystander meets no limit of its own. */
let asked = 0
const address = (): string => `172.${16 + (asked % 16)}.${(asked++ >> 4) % 256}.9`
let isOver = false

async function look(path: string, latencies: number[]): Promise<void> {
  while (!isOver) {
    const begin = performance.now()
    const answer = await fetchFrom(address())(url + path, {
      signal: AbortSignal.timeout(PATIENCE_MS),
    }).catch(() => null)
    await answer?.arrayBuffer().catch(() => {})
    latencies.push(answer?.status === 200 ? performance.now() - begin : PATIENCE_MS)
    await wait(LOOK_MS)
  }
}

async function counting(counts: { tried: number; done: number }, work: () => Promise<unknown>) {
  while (!isOver) {
    counts.tried++
    const late = wait(PATIENCE_MS).then(() => Promise.reject(new Error('late')))
    late.catch(() => {})
    await Promise.race([work(), late]).then(
      () => counts.done++,
      () => {},
    )
    await wait(BUY_MS)
  }
}

/** Pays for an inbox with L402. Returns the request that repeats the purchase. */
async function paidPurchase(): Promise<() => Promise<void>> {
  const headers = {
    'content-type': 'application/json',
    'idempotency-key': randomUUID(),
    'x-payment-protocol': 'l402',
  }
  const purchase = (authorization?: string): Promise<Response> =>
    fetchFrom('172.15.0.1')(`${url}/api/payments/catch`, {
      method: 'POST',
      headers: authorization === undefined ? headers : { ...headers, authorization },
      body: '{"planId":"spark"}',
    })
  const challenge = (await (await purchase()).json()) as { macaroon: string; invoice: string }
  const preimage = await pay(url, challenge.invoice)
  const credential = l402Authorization({ macaroon: challenge.macaroon, preimage })
  return async () => {
    const answer = await purchase(credential)
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(String(answer.status))
  }
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const repeat = await paidPurchase()
await repeat()
parentPort?.on('message', () => {
  isOver = true
  parentPort?.postMessage(seen)
  parentPort?.close()
})
parentPort?.postMessage('ready')
void look('/health', seen.health)
void look('/api/catalog', seen.catalog)
void counting(seen.purchases, () => buyInbox({ url }, 'spark', address()))
void counting(seen.repeats, repeat)
