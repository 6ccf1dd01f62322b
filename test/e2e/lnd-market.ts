/** Buyers at a Mayfly that sells over a real LND, and the books, which have to balance. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CatchCapability, PaymentQuote } from '../../src/client/index.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { list, object, string } from '../support/nodes/json.ts'
import type { LndNode } from '../support/nodes/lnd-node.ts'
import { query, type Stored } from '../support/store.ts'
import { until } from '../support/until.ts'

/** Settings to sell over this node, with a macaroon of just the permissions that we ask for. */
export async function sellingOver(t: After, node: LndNode): Promise<Record<string, string>> {
  const macaroon = join(await temporaryFolder(t), 'mayfly.macaroon')
  writeFileSync(macaroon, await node.bake('invoices:read', 'invoices:write', 'info:read'))
  const files = new URLSearchParams({ macaroon, cert: node.certificateFile })
  return {
    MAYFLY_LIGHTNING_URL: `lnd+${node.baseUrl}?${files}`,
    MAYFLY_RATE_LIMITS: 'off',
  }
}

export type Answer = { status: number; retryAfter: string | null; body: unknown }

export const UNAVAILABLE: Answer = {
  status: 503,
  retryAfter: '5',
  body: { error: 'checkout unavailable' },
}
export const EXPIRED: Answer = { status: 404, retryAfter: null, body: { error: 'order expired' } }

export async function purchase(url: string, key: string): Promise<Answer> {
  return answer(
    await fetch(`${url}/api/payments/catch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: '{"planId":"spark"}',
    }),
  )
}

/** A quote, for which the node has to be there. */
export async function quote(url: string, key: string = randomUUID()): Promise<PaymentQuote> {
  const { status, body } = await purchase(url, key)
  assert.equal(status, 402, JSON.stringify(body))
  return body as PaymentQuote
}

export async function poll(url: string, orderId: string): Promise<Answer> {
  return answer(await fetch(`${url}/api/payments/${orderId}`))
}

/** What every poll of an unpaid order gets. */
export const pending = ({ expiresAt }: PaymentQuote): Answer => ({
  status: 402,
  retryAfter: '1',
  body: { settled: false, expiresAt },
})

/** Polls until the capability is there; any answer but "not yet" ends it. */
export async function collect(url: string, orderId: string): Promise<CatchCapability> {
  const settled = await until('the capability', async () => {
    const answer = await poll(url, orderId)
    return answer.status !== 402 && answer
  })
  return capabilityOf(settled)
}

export function capabilityOf({ status, body }: Answer): CatchCapability {
  assert.equal(status, 200, JSON.stringify(body))
  return (body as { resource: CatchCapability }).resource
}

/** Sends a webhook to the inbox, and reads it as the owner. */
export async function useInbox(url: string, inbox: CatchCapability): Promise<void> {
  const sent = await fetch(`${url}/c/${inbox.publicId}/hook`, {
    method: 'POST',
    body: randomUUID(),
  })
  assert.equal(sent.status, 204)
  const events = await fetch(`${url}/api/catch/${inbox.publicId}/events`, {
    headers: { authorization: `Bearer ${inbox.ownerToken}` },
  })
  assert.equal(events.status, 200)
  const page = object(await events.json())
  assert.equal(object(list(page.events)[0]).path, '/hook')
}

/** Waits for the catalogue to say that things are, or are not, on sale. */
export async function untilCheckout(url: string, enabled: boolean): Promise<void> {
  await until(`checkoutEnabled to be ${enabled}`, async () => {
    const { checkoutEnabled } = object(await (await fetch(`${url}/api/catalog`)).json())
    return checkoutEnabled === enabled
  })
}

/** Waits for the server to learn of a payment by itself, that is, without a poll. */
export async function untilSettled(
  server: { logged: string[] },
  paymentHash: string,
): Promise<void> {
  await until('the settlement', () =>
    server.logged.some((line) => line.includes('"order.settled"') && line.includes(paymentHash)),
  )
}

/** The public ids of everything that was sold, in SQL: each product has its table. */
export const CAPABILITIES = ['catch_inbox', 'pulse_monitor', 'whisper']
  .map((table) => `select public_id from ${table}`)
  .join(' union all ')

export async function countOrders(server: Stored): Promise<number> {
  return (await query(server, 'select order_id from purchase_order')).length
}

export type Books = {
  /** The store sold or extended one capability for each invoice of its orders that the node was paid, no more. */
  balance(server: Stored): Promise<void>
  /** Every payment that the node has ever got is in the books of a store that balanced. */
  close(): Promise<void>
}

export function openBooks(node: LndNode): Books {
  const accounted = new Set<string>()

  /** Satoshis by payment hash. */
  async function paid(): Promise<Map<string, number>> {
    const { invoices } = await node.get('/v1/invoices?num_max_invoices=100000')
    const settled = list(invoices)
      .map(object)
      .filter(({ state }) => state === 'SETTLED')
    return new Map(
      settled.map(({ r_hash, amt_paid_sat }) => [
        Buffer.from(string(r_hash), 'base64').toString('hex'),
        Number(string(amt_paid_sat)),
      ]),
    )
  }

  return {
    async balance(server) {
      const received = await paid()
      const orders = (await query(server, 'select payment_hash from purchase_order')).map((row) =>
        String(row.payment_hash),
      )
      const bought = orders
        .filter((hash) => received.has(hash))
        .map((hash) => ({ hash, sats: received.get(hash) }))
      // From the capabilities, not the orders: one that no order stands behind must show.
      const sold = await query(
        server,
        `select o.payment_hash as hash, o.amount_sats as sats from (${CAPABILITIES}) as c
         left join purchase_order o on o.public_id = c.public_id and o.state = 'settled'`,
      )
      const extended = await query(
        server,
        `select payment_hash as hash, amount_sats as sats from purchase_order
         where extends_id is not null and public_id is null and state = 'settled'`,
      )
      assert.deepEqual(sorted([...sold, ...extended]), sorted(bought))
      for (const { hash } of bought) accounted.add(hash)
    },

    async close() {
      assert.deepEqual(accounted, new Set((await paid()).keys()))
    },
  }
}

function sorted(entries: Record<string, unknown>[]): string[] {
  return entries.map(({ hash, sats }) => `${hash} ${sats}`).toSorted()
}

async function answer(response: Response): Promise<Answer> {
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: await response.json(),
  }
}
