/**
 * Clients that other people wrote, at a Mayfly on whatever node: each buys with a key, each product in each way that it
 * can be told to, or at an address that is all it knows. Each uses what it bought, and pays once, whatever happens to
 * the answer.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  Fetch402InterruptedError,
  fetch402,
  fetchWithL402,
  fetchWithMpp,
  type PaymentCredentials,
} from '@getalby/lightning-tools/402'
import { Receipt } from 'mppx'
import { Mppx } from 'mppx/client'
import type { CatchCapability, PulseCapability, WhisperCapability } from '../../src/client/index.ts'
import type { After } from '../support/folder.ts'
import { mppxLightning } from '../support/mppx.ts'
import type { TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { useInbox } from './lnd-market.ts'
import { startProxy } from './payment-proxy.ts'
import { buyAsL402kit, buyAsL402Requests, buyAsLnget } from './url-clients.ts'

/** A wallet that counts. `afterPaying` runs before the client hears of the payment. */
export type Wallet = {
  payInvoice(ask: { invoice: string }): Promise<{ preimage: string }>
  paid: string[]
  afterPaying: () => Promise<void>
}

type Request = Pick<RequestInit, 'method' | 'body'> & { headers?: Record<string, string> }

/** How a client buys; with the credentials of an error that it threw, it goes on. */
type Client = {
  client: string
  buy(
    url: string,
    request: Request,
    given: { wallet: Wallet; credentials?: PaymentCredentials },
  ): Promise<Response>
  /** Its error carries the credentials. Those of other clients are sent again by their program. */
  throwsCredentials: boolean
}

type Buyer = Client & {
  path: string
  /** Of one purchase: with a key, the same request again is the same purchase. */
  request(): Request
  hasKey: boolean
  hasReceipt: boolean
}

const alby = (client: string, buy: typeof fetch402): Client => ({
  client: `Alby ${client}`,
  // It changes what it is given.
  buy: (url, request, given) => buy(url, { ...request, headers: { ...request.headers } }, given),
  throwsCredentials: true,
})
const MPP = alby('fetchWithMpp', fetchWithMpp)
const FETCH_402 = alby('fetch402', fetch402)
const FETCH_L402 = alby('fetchWithL402', fetchWithL402)

const MPPX: Client = {
  client: 'mppx',
  buy(url, request, { wallet }) {
    const pay = async (invoice: string) => (await wallet.payInvoice({ invoice })).preimage
    // With its own default of three payments: it must not come to that.
    return Mppx.create({ polyfill: false, methods: [mppxLightning(pay)] }).fetch(url, request)
  },
  throwsCredentials: false,
}

const theRulesOf = (
  name: string,
  buy: (url: string, wallet: Wallet) => Promise<Response>,
): Client => ({
  client: `the rules of ${name}`,
  buy: (url, _request, { wallet }) => buy(url, wallet),
  throwsCredentials: false,
})

const PAYMENT = { 'x-payment-protocol': 'payment' }
const L402 = { 'x-payment-protocol': 'l402' }

/** The clients that can send a key, and the headers by which its user, or nobody, selects the flow. */
const KEYED: [client: Client, flow: 'Payment' | 'L402', headers: Record<string, string>][] = [
  [MPP, 'Payment', PAYMENT],
  [MPP, 'Payment', { 'accept-payment': 'lightning/charge' }],
  [FETCH_402, 'Payment', PAYMENT],
  [FETCH_L402, 'L402', L402],
  [FETCH_L402, 'L402', { 'accept-authenticate': 'L402' }],
  [FETCH_402, 'L402', L402],
  // It says by itself, in Accept-Payment, what it can pay.
  [MPPX, 'Payment', {}],
  [MPPX, 'Payment', PAYMENT],
]

/** Every byte there is, since clients may take a body for text. */
const CIPHERTEXT = Uint8Array.from({ length: 256 }, (_, i) => i)

const SPARK = { headers: { 'content-type': 'application/json' }, body: '{"planId":"spark"}' }

/** A new product is a new row, its use below, and its table in CAPABILITIES. */
const PRODUCTS = {
  catch: SPARK,
  pulse: SPARK,
  whisper: {
    headers: { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'spark' },
    body: CIPHERTEXT,
  },
}

const CATCH = '/api/buy/catch/spark'
const PULSE = '/api/buy/pulse/spark'

/** Who buys by an address alone: no header, no body, no option but their wallet. */
const BY_URL: [client: Client, path: string, request?: Request][] = [
  ...[CATCH, PULSE, `${CATCH}/l402`, `${PULSE}/l402`].map((path): [Client, string] => [
    FETCH_402,
    path,
  ]),
  [FETCH_L402, CATCH],
  [FETCH_L402, `${CATCH}/l402`],
  [MPP, CATCH],
  [MPP, PULSE],
  [MPPX, CATCH],
  [{ ...MPPX, client: 'mppx, with POST' }, PULSE, { method: 'POST' }],
  [theRulesOf('l402-requests', buyAsL402Requests), CATCH],
  [theRulesOf('l402-requests', buyAsL402Requests), `${PULSE}/l402`],
  [theRulesOf('lnget', buyAsLnget), `${CATCH}/l402`],
  [theRulesOf('l402kit', buyAsL402kit), `${PULSE}/l402`],
]

const BUYERS: Buyer[] = [
  ...Object.entries(PRODUCTS).flatMap(([product, { headers, body }]) =>
    KEYED.map(([client, flow, selector]) => ({
      ...client,
      client: `${client.client} (${Object.entries(selector).flat().join(': ') || 'nothing said'})`,
      path: `/api/payments/${product}`,
      request: () => ({
        method: 'POST',
        headers: { 'idempotency-key': randomUUID(), ...headers, ...selector },
        body,
      }),
      hasKey: true,
      hasReceipt: flow === 'Payment',
    })),
  ),
  ...BY_URL.map(([client, path, request = {}]) => ({
    ...client,
    path,
    request: () => request,
    hasKey: false,
    hasReceipt: false,
  })),
]

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

    for (const buyer of BUYERS) oneBuyer(() => shop, buyer)
  })
}

function oneBuyer(theShop: () => Shop, buyer: Buyer): void {
  const { client, path, buy, hasKey } = buyer

  async function open(t: After) {
    const { server, pay, isBalanced } = theShop()
    const before = await ordersIn(server)
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
    return { server, isBalanced, before, proxy, wallet, url: proxy.url + path }
  }

  /** The answer is what was paid for, it works, and the store sold as many as were paid. */
  async function isGood(
    { server, isBalanced, before, proxy, wallet }: Awaited<ReturnType<typeof open>>,
    response: Response,
    purchases = 1,
  ): Promise<void> {
    const text = await response.text()
    assert.equal(response.status, 200, text)
    const { settled, resource } = JSON.parse(text)
    assert.equal(settled, true)
    assert.equal(resource.product, path.split('/')[3])
    await use(proxy.url, resource)
    assert.equal(wallet.paid.length, purchases, 'payments')
    const opened = (await ordersIn(server)).slice(before.length)
    const sold = opened.filter(({ state }) => hasKey || state === 'settled')
    assert.deepEqual(
      sold,
      wallet.paid.map((bolt11) => ({ bolt11, state: 'settled', product: resource.product })),
    )
    await isBalanced()
  }

  test(`${client} buys at ${path}, and uses what it bought`, async (t) => {
    const visit = await open(t)
    const response = await buy(visit.url, buyer.request(), visit)
    if (buyer.hasReceipt) assert.equal(Receipt.fromResponse(response).status, 'success')
    await isGood(visit, response)
  })

  if (hasKey) {
    test(`${client} gets what it bought at ${path} when the answer got lost, by the same request again`, async (t) => {
      const visit = await open(t)
      const request = buyer.request()
      visit.proxy.next = 'lose the answer'
      await assert.rejects(buy(visit.url, request, visit))
      const response = await buy(visit.url, request, visit)
      assert.equal(await response.clone().text(), visit.proxy.paid[0]?.body.toString())
      await isGood(visit, response)
    })
  }

  if (buyer.throwsCredentials || !hasKey) {
    test(`${client} gets what it bought at ${path} when the answer got lost, by its credential and after a restart`, async (t) => {
      const visit = await open(t)
      const { url, proxy, wallet } = visit
      const request = buyer.request()
      proxy.next = 'lose the answer'
      const error = await buy(url, request, visit).then(
        () => assert.fail('the answer got lost'),
        (thrown: unknown) => thrown,
      )
      await visit.server.restart()
      const response = await goOn()
      assert.equal(await response.clone().text(), proxy.paid[0]?.body.toString())
      await isGood(visit, response)

      function goOn(): Promise<Response> {
        const { credential: authorization } = proxy
        if (!buyer.throwsCredentials) return fetch(url, { headers: { authorization } })
        assert.ok(error instanceof Fetch402InterruptedError && error.paid && error.credentials)
        return buy(url, request, { wallet, credentials: error.credentials })
      }
    })
  }

  test(`${client} buys at ${path} across a restart between the challenge and the paid repeat`, async (t) => {
    const visit = await open(t)
    visit.wallet.afterPaying = () => visit.server.restart()
    await isGood(visit, await buy(visit.url, buyer.request(), visit))
  })

  test(`${client} buys at ${path} once where the paid repeat arrives 20 times at once`, async (t) => {
    const visit = await open(t)
    visit.proxy.next = 'send it 20 times'
    const response = await buy(visit.url, buyer.request(), visit)
    const { paid } = visit.proxy
    assert.deepEqual(
      paid.map(({ status }) => status),
      Array.from({ length: 20 }, () => 200),
    )
    assert.equal(new Set(paid.map(({ body }) => body.toString())).size, 1)
    assert.equal(new Set(paid.map(({ lines }) => lines['payment-receipt']?.join())).size, 1)
    await isGood(visit, response)
  })

  test(`${client} buys at ${path} twice if it is asked twice, although it still sends its old credential`, async (t) => {
    const visit = await open(t)
    await isGood(visit, await buy(visit.url, buyer.request(), visit))
    const { credential: authorization } = visit.proxy
    assert.match(authorization, /^(?:Payment|L402) /)
    const again = buyer.request()
    if (hasKey) again.headers = { ...again.headers, authorization }
    await isGood(visit, await buy(visit.url, again, visit), 2)
  })
}

export function ordersIn(server: TestServer): Promise<Record<string, unknown>[]> {
  return query(
    server,
    'select bolt11, state, product from purchase_order order by created_at, order_id',
  )
}

/** Does what the capability is for. */
export async function use(
  url: string,
  capability: CatchCapability | PulseCapability | WhisperCapability,
): Promise<void> {
  if (capability.product === 'catch') return useInbox(url, capability)
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const { publicId } = capability
  if (capability.product === 'pulse') {
    const { pingToken, ownerToken } = capability
    const pinged = await fetch(`${url}/p/${publicId}`, { method: 'POST', ...bearer(pingToken) })
    assert.equal(pinged.status, 204)
    const status = await fetch(`${url}/api/pulse/${publicId}`, bearer(ownerToken))
    return assert.equal(((await status.json()) as { state: string }).state, 'operational')
  }
  // It has more reads, so that it is still there to be counted.
  const read = await fetch(`${url}/w/${publicId}`, bearer(capability.readToken))
  assert.equal(read.status, 200)
  assert.deepEqual(await read.bytes(), CIPHERTEXT)
}
