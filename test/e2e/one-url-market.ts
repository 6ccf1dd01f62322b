/**
 * Clients of other people, at a Mayfly on whatever node, buy at an address that is all they know: no header, no
 * body, no option but their wallet. Each uses what it bought, and pays once, whatever happens to the answer.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  Fetch402InterruptedError,
  fetch402,
  fetchWithL402,
  fetchWithMpp,
} from '@getalby/lightning-tools/402'
import type { CatchCapability, PulseCapability } from '../../src/client/index.ts'
import { base64, base64Bytes, hex, utf8 } from '../../src/lib/bytes.ts'
import { hmacSha256 } from '../../src/protocol/hmac.ts'
import { decodeMacaroon, encodeMacaroon } from '../../src/protocol/macaroon.ts'
import type { After } from '../support/folder.ts'
import { startProxy } from '../support/proxy.ts'
import type { TestServer } from '../support/server.ts'
import { mppxWith, ordersIn, type Shop, useMonitor, type Wallet } from './client-market.ts'
import { useInbox } from './lnd-market.ts'

type Client = {
  client: string
  path: string
  buy(url: string, wallet: Wallet): Promise<Response>
  /** After an answer that got lost: with what the client kept. */
  resume(
    error: unknown,
    url: string,
    kept: { wallet: Wallet; credential: string },
  ): Promise<Response>
}

/** A client whose program sends the credential again that it has kept. */
const sendAgain: Client['resume'] = (_error, url, { credential }) =>
  fetch(url, { headers: { authorization: credential } })

type Fetch402 = typeof fetch402

const CATCH = '/api/buy/catch/spark'
const PULSE = '/api/buy/pulse/spark'

const CLIENTS: Client[] = [
  ...[CATCH, PULSE, `${CATCH}/l402`, `${PULSE}/l402`].map((path) =>
    alby('fetch402', fetch402, path),
  ),
  ...[CATCH, `${CATCH}/l402`].map((path) => alby('fetchWithL402', fetchWithL402, path)),
  ...[CATCH, PULSE].map((path) => alby('fetchWithMpp', fetchWithMpp, path)),
  {
    client: 'mppx',
    path: CATCH,
    buy: (url, wallet) => mppxWith(wallet).fetch(url),
    resume: sendAgain,
  },
  {
    client: 'mppx, with POST',
    path: PULSE,
    buy: (url, wallet) => mppxWith(wallet).fetch(url, { method: 'POST' }),
    resume: sendAgain,
  },
  ...[CATCH, `${PULSE}/l402`].map((path) => ({
    client: 'the rules of l402-requests',
    path,
    buy: buyAsL402Requests,
    resume: sendAgain,
  })),
  { client: 'the rules of lnget', path: `${CATCH}/l402`, buy: buyAsLnget, resume: sendAgain },
  {
    client: 'the rules of l402kit',
    path: `${PULSE}/l402`,
    buy: buyAsL402kit,
    resume: sendAgain,
  },
]

function alby(client: string, buy: Fetch402, path: string): Client {
  return {
    client: `Alby ${client}`,
    path,
    buy: (url, wallet) => buy(url, {}, { wallet }),
    resume(error, url, { wallet }) {
      assert.ok(error instanceof Fetch402InterruptedError)
      assert.ok(error.paid && error.credentials)
      return buy(url, {}, { wallet, credentials: error.credentials })
    },
  }
}

/**
 * PyPI l402-requests 0.9.0, challenge.py and client.py: the first field line that this expression finds, L402
 * before Payment; the credential is kept per host and path.
 */
async function buyAsL402Requests(url: string, wallet: Wallet): Promise<Response> {
  const asked = await fetch(url)
  if (asked.status !== 402) return asked
  const found = /(?:L402|LSAT)\s+macaroon="([^"]+)"\s*,\s*invoice="([^"]+)"/i.exec(
    asked.headers.get('www-authenticate') ?? '',
  )
  const [, macaroon = '', invoice = ''] = found ?? []
  const { preimage } = await wallet.payInvoice({ invoice })
  return fetch(url, { headers: { authorization: `L402 ${macaroon}:${preimage}` } })
}

/**
 * lnget c855f41, l402/header.go and client/transport.go: only the first field line, which must begin with the
 * scheme; a second challenge before it pays; the macaroon comes back with a caveat of its preimage.
 */
async function buyAsLnget(url: string, wallet: Wallet): Promise<Response> {
  await fetch(url)
  const asked = await fetch(url)
  if (asked.status !== 402) return asked
  const [scheme, sent = '', invoice = ''] =
    /^(?:LSAT|L402)\s+macaroon="([^"]*?)",\s*invoice="([^"]*?)"/i.exec(
      asked.headers.get('www-authenticate') ?? '',
    ) ?? []
  assert.ok(scheme, 'the first field line is an L402 challenge')
  const macaroon = decodeMacaroon(base64Bytes(sent) ?? new Uint8Array())
  assert.ok(macaroon)
  const { preimage } = await wallet.payInvoice({ invoice })
  const caveat = utf8(`preimage=${preimage}`)
  const token = base64(
    encodeMacaroon({
      ...macaroon,
      caveats: [...macaroon.caveats, caveat],
      signature: hmacSha256(macaroon.signature, caveat),
    }),
  )
  assert.match(hex(macaroon.identifier), /^0000/, 'the version that it reads')
  return fetch(url, { headers: { authorization: `L402 ${token}:${preimage}` } })
}

/** PyPI l402kit 1.10.1: the members of the body first. */
async function buyAsL402kit(url: string, wallet: Wallet): Promise<Response> {
  const asked = await fetch(url)
  if (asked.status !== 402) return asked
  const { macaroon, invoice } = (await asked.json()) as Record<string, string>
  const { preimage } = await wallet.payInvoice({ invoice: invoice ?? '' })
  return fetch(url, { headers: { authorization: `L402 ${macaroon}:${preimage}` } })
}

/** One shop for all of them, since nothing that one does may matter to another. */
export function clientsBuyByUrl(node: string, openShop: (t: After) => Promise<Shop>): void {
  describe(`clients with an address and a wallet over ${node}`, () => allClients(openShop))
}

function allClients(openShop: (t: After) => Promise<Shop>): void {
  const closing: (() => unknown)[] = []
  let shop: Shop

  before(async () => {
    shop = await openShop({ after: (work) => closing.push(work) })
  })
  after(async () => {
    for (const close of closing) await close()
  })

  async function open(t: After, path: string) {
    const { server, pay } = shop
    const paidBefore = await paidIn(server)
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
    return { paidBefore, proxy, wallet, url: proxy.url + path }
  }

  /** The answer is what was paid for, it works, and the store sold as many as were paid. */
  async function isGood(
    { paidBefore, proxy, wallet }: Awaited<ReturnType<typeof open>>,
    response: Response,
    purchases = 1,
  ): Promise<void> {
    const text = await response.text()
    assert.equal(response.status, 200, text)
    const { resource } = JSON.parse(text) as { resource: CatchCapability | PulseCapability }
    if (resource.product === 'catch') await useInbox(proxy.url, resource)
    else await useMonitor(proxy.url, resource)
    assert.equal(wallet.paid.length, purchases, 'payments')
    const paid = (await paidIn(shop.server)).filter((bolt11) => !paidBefore.includes(bolt11))
    assert.deepEqual(paid.sort(), wallet.paid.toSorted())
    await shop.isBalanced()
  }

  for (const { client, path, buy, resume } of CLIENTS) {
    test(`${client} buys at ${path} with nothing but its wallet`, async (t) => {
      const visit = await open(t, path)
      await isGood(visit, await buy(visit.url, visit.wallet))
    })

    test(`${client} gets what it bought at ${path} when the answer got lost, and pays once`, async (t) => {
      const visit = await open(t, path)
      visit.proxy.next = 'lose the answer'
      const error = await buy(visit.url, visit.wallet).then(
        () => assert.fail('the answer got lost'),
        (thrown: unknown) => thrown,
      )
      await shop.server.restart()
      const { wallet, proxy } = visit
      const response = await resume(error, visit.url, { wallet, credential: proxy.credential })
      assert.equal(await response.clone().text(), proxy.paid[0]?.body.toString())
      await isGood(visit, response)
    })

    test(`${client} buys at ${path} across a restart between the challenge and the paid repeat`, async (t) => {
      const visit = await open(t, path)
      visit.wallet.afterPaying = () => shop.server.restart()
      await isGood(visit, await buy(visit.url, visit.wallet))
    })

    test(`${client} buys at ${path} once where the paid repeat arrives 20 times at once`, async (t) => {
      const visit = await open(t, path)
      visit.proxy.next = 'send it 20 times'
      const response = await buy(visit.url, visit.wallet)
      const { paid } = visit.proxy
      assert.deepEqual(
        paid.map(({ status }) => status),
        Array.from({ length: 20 }, () => 200),
      )
      assert.equal(new Set(paid.map(({ body }) => body.toString())).size, 1)
      await isGood(visit, response)
    })

    test(`${client} buys at ${path} twice if it is asked twice`, async (t) => {
      const visit = await open(t, path)
      await isGood(visit, await buy(visit.url, visit.wallet))
      await isGood(visit, await buy(visit.url, visit.wallet), 2)
    })
  }
}

async function paidIn(server: TestServer): Promise<string[]> {
  const orders = await ordersIn(server)
  return orders.filter(({ state }) => state === 'settled').map(({ bolt11 }) => String(bolt11))
}
