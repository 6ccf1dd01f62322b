/**
 * Clients that other people wrote, at a Mayfly on whatever node: each buys each product in each way
 * that it can be told to, uses what it bought, and pays once, whatever happens to the answer.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  Fetch402InterruptedError,
  fetch402,
  fetchWithL402,
  fetchWithMpp,
} from '@getalby/lightning-tools/402'
import { Receipt } from 'mppx'
import { Mppx } from 'mppx/client'
import type { CatchCapability, PulseCapability, WhisperCapability } from '../../src/client/index.ts'
import type { After } from '../support/folder.ts'
import { mppxLightning } from '../support/mppx-lightning.ts'
import { startProxy } from '../support/proxy.ts'
import type { TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { useInbox } from './lnd-market.ts'

type ProductRow = {
  product: string
  path: string
  request: { headers: Record<string, string>; body: string | Uint8Array<ArrayBuffer> }
  /** Does what the capability is for. */
  use(url: string, capability: unknown): Promise<void>
}

/** Every byte there is, since clients may take a body for text. */
const CIPHERTEXT = Uint8Array.from({ length: 256 }, (_, i) => i)

/** A new product is a new row, and its table in CAPABILITIES. */
const PRODUCTS: ProductRow[] = [
  {
    product: 'catch',
    path: '/api/payments/catch',
    request: { headers: { 'content-type': 'application/json' }, body: '{"planId":"spark"}' },
    use: (url, capability) => useInbox(url, capability as CatchCapability),
  },
  {
    product: 'pulse',
    path: '/api/payments/pulse',
    request: { headers: { 'content-type': 'application/json' }, body: '{"planId":"spark"}' },
    use: (url, capability) => useMonitor(url, capability as PulseCapability),
  },
  {
    product: 'whisper',
    path: '/api/payments/whisper',
    request: {
      headers: { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'spark' },
      body: CIPHERTEXT,
    },
    use: (url, capability) => useWhisper(url, capability as WhisperCapability),
  },
]

/** A wallet that counts. `afterPaying` runs before the client hears of the payment. */
export type Wallet = {
  payInvoice(ask: { invoice: string }): Promise<{ preimage: string }>
  paid: string[]
  afterPaying: () => Promise<void>
}

type Init = { method: 'POST'; headers: Record<string, string>; body: ProductRow['request']['body'] }

type ClientRow = {
  client: string
  /** The headers by which its user, or nobody, selects the flow. */
  selectors: Record<string, string>[]
  buy(url: string, init: Init, wallet: Wallet): Promise<Response>
  /** The same after an error: with what the error carries, where the client knows of that. */
  resume?(error: unknown, url: string, ask: { init: Init; wallet: Wallet }): Promise<Response>
  hasReceipt: boolean
}

type Fetch402 = typeof fetch402

const PAYMENT = { 'x-payment-protocol': 'payment' }
const L402 = { 'x-payment-protocol': 'l402' }

const CLIENTS: ClientRow[] = [
  alby('Alby fetchWithMpp', fetchWithMpp, [PAYMENT, { 'accept-payment': 'lightning/charge' }]),
  alby('Alby fetch402', fetch402, [PAYMENT]),
  alby('Alby fetchWithL402', fetchWithL402, [L402, { 'accept-authenticate': 'L402' }]),
  alby('Alby fetch402', fetch402, [L402]),
  {
    client: 'mppx',
    // It says by itself, in Accept-Payment, what it can pay.
    selectors: [{}, PAYMENT],
    buy: (url, init, wallet) => mppxWith(wallet).fetch(url, init),
    hasReceipt: true,
  },
]

function alby(client: string, buy: Fetch402, selectors: ClientRow['selectors']): ClientRow {
  return {
    client,
    selectors,
    // It changes what it is given.
    buy: (url, init, wallet) => buy(url, { ...init, headers: { ...init.headers } }, { wallet }),
    resume(error, url, { init, wallet }) {
      assert.ok(error instanceof Fetch402InterruptedError)
      assert.ok(error.paid && error.credentials)
      const { credentials } = error
      return buy(url, { ...init, headers: { ...init.headers } }, { wallet, credentials })
    },
    hasReceipt: !selectors.some((headers) => 'accept-authenticate' in headers || headers === L402),
  }
}

export function mppxWith(wallet: Wallet) {
  const lightning = mppxLightning(
    async (invoice) => (await wallet.payInvoice({ invoice })).preimage,
  )
  // With its own default of three payments: it must not come to that.
  return Mppx.create({ polyfill: false, methods: [lightning] })
}

export type Shop = {
  server: TestServer
  /** The wallet of whoever buys; the preimage. */
  pay(bolt11: string): Promise<string>
  /** Holds the store's books against the node's. */
  isBalanced(): Promise<void>
}

/** One shop for all of them, since nothing that one does may matter to another. */
export function clientsBuy(node: string, openShop: (t: After) => Promise<Shop>): void {
  describe(`clients over ${node}`, () => {
    const closing: (() => unknown)[] = []
    let shop: Shop

    before(async () => {
      shop = await openShop({ after: (work) => closing.push(work) })
    })
    after(async () => {
      for (const close of closing) await close()
    })

    for (const row of PRODUCTS) {
      for (const client of CLIENTS) {
        for (const selector of client.selectors) {
          const how = Object.entries(selector).flat().join(': ') || 'nothing said'
          describe(`${client.client} buys ${row.product} (${how})`, () =>
            oneClient(() => shop, row, { client, selector }))
        }
      }
    }
  })
}

function oneClient(
  theShop: () => Shop,
  { product, path, request, use }: ProductRow,
  { client, selector }: { client: ClientRow; selector: Record<string, string> },
): void {
  async function open(t: After) {
    const { server, pay, isBalanced } = theShop()
    const ordersBefore = (await ordersIn(server)).length
    const proxy = await startProxy(t, server)
    const wallet: Wallet = {
      paid: [],
      afterPaying: async () => {},
      async payInvoice({ invoice }) {
        wallet.paid.push(invoice)
        const preimage = await pay(invoice)
        await wallet.afterPaying()
        return { preimage }
      },
    }
    const url = proxy.url + path
    const init = (more: Record<string, string> = {}): Init => ({
      method: 'POST',
      headers: {
        'idempotency-key': randomUUID(),
        ...request.headers,
        ...selector,
        ...more,
      },
      body: request.body,
    })
    return { server, isBalanced, ordersBefore, proxy, wallet, url, init }
  }

  /** The answer is what was paid for, it works, and the store sold as many as were paid. */
  async function isGood(
    { server, isBalanced, ordersBefore, proxy, wallet }: Awaited<ReturnType<typeof open>>,
    response: Response,
    purchases = 1,
  ): Promise<void> {
    const text = await response.text()
    assert.equal(response.status, 200, text)
    const { settled, resource } = JSON.parse(text)
    assert.equal(settled, true)
    assert.equal(resource.product, product)
    await use(proxy.url, resource)
    assert.equal(new Set(wallet.paid).size, purchases, 'invoices paid')
    assert.equal(wallet.paid.length, purchases, 'payments')
    assert.deepEqual(
      (await ordersIn(server)).slice(ordersBefore),
      wallet.paid.map((bolt11) => ({ bolt11, state: 'settled', product })),
    )
    await isBalanced()
  }

  test(`${client.client} uses the ${product} that it bought`, async (t) => {
    const shop = await open(t)
    const response = await client.buy(shop.url, shop.init(), shop.wallet)
    if (client.hasReceipt) assert.equal(Receipt.fromResponse(response).status, 'success')
    await isGood(shop, response)
  })

  test(`${client.client} gets the ${product} of a lost answer by the same request again`, async (t) => {
    const shop = await open(t)
    const init = shop.init()
    shop.proxy.next = 'lose the answer'
    await assert.rejects(client.buy(shop.url, init, shop.wallet))
    assert.equal(shop.proxy.paid[0]?.status, 200)
    const response = await client.buy(shop.url, init, shop.wallet)
    assert.equal(await response.clone().text(), shop.proxy.paid[0]?.body.toString())
    await isGood(shop, response)
  })

  const { resume } = client
  if (resume) {
    test(`${client.client} gets the ${product} of a lost answer by its credential`, async (t) => {
      const shop = await open(t)
      const init = shop.init()
      shop.proxy.next = 'lose the answer'
      const error = await client.buy(shop.url, init, shop.wallet).catch((thrown) => thrown)
      const response = await resume(error, shop.url, { init, wallet: shop.wallet })
      assert.equal(await response.clone().text(), shop.proxy.paid[0]?.body.toString())
      await isGood(shop, response)
    })
  }

  test(`${client.client} buys ${product} across a restart between the challenge and the paid repeat`, async (t) => {
    const shop = await open(t)
    shop.wallet.afterPaying = () => shop.server.restart()
    await isGood(shop, await client.buy(shop.url, shop.init(), shop.wallet))
  })

  test(`${client.client} buys ${product} once where the paid repeat arrives 20 times at once`, async (t) => {
    const shop = await open(t)
    shop.proxy.next = 'send it 20 times'
    const response = await client.buy(shop.url, shop.init(), shop.wallet)
    const { paid } = shop.proxy
    assert.equal(paid.length, 20)
    assert.deepEqual(new Set(paid.map(({ status }) => status)), new Set([200]))
    assert.equal(new Set(paid.map(({ body }) => body.toString())).size, 1)
    assert.equal(new Set(paid.map(({ headers }) => headers['payment-receipt']?.join())).size, 1)
    await isGood(shop, response)
  })

  test(`${client.client} buys another ${product} although it still sends its old credential`, async (t) => {
    const shop = await open(t)
    const first = await client.buy(shop.url, shop.init(), shop.wallet)
    const { credential } = shop.proxy
    assert.match(credential, /^(?:Payment|L402) /)
    await isGood(shop, first)
    const second = await client.buy(shop.url, shop.init({ authorization: credential }), shop.wallet)
    await isGood(shop, second, 2)
  })
}

export function ordersIn(server: TestServer): Promise<Record<string, unknown>[]> {
  return query(
    server,
    'select bolt11, state, product from purchase_order order by created_at, order_id',
  )
}

/** Pings it, and reads as its owner that it is alive. */
export async function useMonitor(url: string, monitor: PulseCapability): Promise<void> {
  const { publicId, pingToken, ownerToken } = monitor
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const pinged = await fetch(`${url}/p/${publicId}`, { method: 'POST', ...bearer(pingToken) })
  assert.equal(pinged.status, 204)
  const status = await fetch(`${url}/api/pulse/${publicId}`, bearer(ownerToken))
  assert.equal(((await status.json()) as { state: string }).state, 'operational')
}

/** Reads it once; it has more reads, so that it is still there to be counted. */
async function useWhisper(url: string, whisper: WhisperCapability): Promise<void> {
  const answer = await fetch(`${url}/w/${whisper.publicId}`, {
    headers: { authorization: `Bearer ${whisper.readToken}` },
  })
  assert.equal(answer.status, 200)
  assert.deepEqual(await answer.bytes(), CIPHERTEXT)
}
