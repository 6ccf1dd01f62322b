/**
 * The paid repeat: verifies a credential, and settles, provisions and delivers its order durably. The
 * orders are prepared before the measurement. The service does not learn of their payment until the repeat,
 * so the repeat settles them.
 */
import { randomUUID } from 'node:crypto'
import { Pool } from 'undici'
import {
  l402Authorization,
  l402Challenges,
  paymentAuthorization,
  paymentChallenges,
} from '../../test/support/payer.ts'
import { createCost } from '../cost.ts'
import type { Engine } from '../engine.ts'
import { load, type Measured } from '../load.ts'
import { type MayflyProgram, startBare, startMayfly } from '../program.ts'
import { bareRate } from './challenge.ts'

const ORDERS = 16_000
const WARM_UP = 2_000
const CONNECTIONS = 32
const BODY = '{"planId":"spark"}'
const TARGET = '/api/payments/catch'

export type Protocol = 'payment' | 'l402'
export type Prepared = { key: string; authorization: string }

export async function paidRepeatRow(engine: Engine): Promise<string[]> {
  return [await repeats(engine, 'payment'), await repeats(engine, 'l402')]
}

async function repeats(engine: Engine, protocol: Protocol): Promise<string> {
  const bare = await startBare()
  const mayfly = await startMayfly(engine, { MAYFLY_LOG_LEVEL: 'info' })
  try {
    const orders = await prepare(mayfly, protocol, WARM_UP + ORDERS)
    await redeem(mayfly, orders.slice(0, WARM_UP))
    const cost = createCost([mayfly.cpuMs, engine.cpuMs])
    const first = await cost.during(() => redeem(mayfly, orders.slice(WARM_UP)))
    const memory = mayfly.memoryMib()
    const theirs = await bareRate(bare.url)
    const again = await redeem(mayfly, orders.slice(WARM_UP))
    return (
      `${protocol}: ${first.perSecond}/s with ${CONNECTIONS} connections, p50 ${first.p50} ms, ` +
      `p99 ${first.p99} ms, ${first.errors} errors; bare ${theirs}/s; ` +
      `ratio ${(first.perSecond / theirs).toFixed(3)}; ` +
      `CPU a request ${cost.line()} (service + store); ${memory} MiB; ` +
      `the same again, already delivered: ${again.perSecond}/s, ${again.errors} errors`
    )
  } finally {
    await mayfly.stop()
    await bare.stop()
  }
}

/** Repeats each order once, in turn. */
export function redeem({ url }: MayflyProgram, orders: readonly Prepared[]): Promise<Measured> {
  let next = 0
  return load(
    {
      url: url + TARGET,
      connections: CONNECTIONS,
      requests: orders.length,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: BODY,
      eachRequest: (request) => {
        // autocannon prepares one request per connection that it never sends.
        const { key, authorization } = orders[next++ % orders.length] ?? {
          key: '',
          authorization: '',
        }
        return {
          ...request,
          headers: { ...request.headers, 'idempotency-key': key, authorization },
        }
      },
    },
    200,
  )
}

export async function prepare(
  { url, store }: MayflyProgram,
  protocol: Protocol,
  count: number,
): Promise<Prepared[]> {
  const pool = new Pool(url, { connections: CONNECTIONS })
  const asked: { key: string; field: string; paymentHash: string }[] = []
  let left = count
  async function buyer(): Promise<void> {
    while (left-- > 0) {
      const key = randomUUID()
      const { headers, body } = await pool.request({
        method: 'POST',
        path: TARGET,
        headers: {
          'content-type': 'application/json',
          'idempotency-key': key,
          'x-payment-protocol': protocol,
        },
        body: BODY,
      })
      const { paymentHash } = (await body.json()) as { paymentHash: string }
      asked.push({ key, field: String(headers['www-authenticate']), paymentHash })
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, buyer))
  await pool.close()

  const invoices = await store.rows('select payment_hash, preimage from simulator_invoice')
  const preimages = new Map(invoices.map((row) => [row.payment_hash, String(row.preimage)]))
  return asked.map(({ key, field, paymentHash }) => ({
    key,
    authorization: credential(field, preimages.get(paymentHash) ?? ''),
  }))
}

function credential(field: string, preimage: string): string {
  const challenges = [field]
  const [challenge] = paymentChallenges(challenges)
  if (challenge) return paymentAuthorization({ challenge, payload: { preimage } })
  const [l402] = l402Challenges(challenges)
  if (l402) return l402Authorization({ macaroon: l402.macaroon, preimage })
  throw new Error(`no challenge: ${field}`)
}
