/** Names that strangers choose: what a hostile name server can do, and to whom. */
import assert from 'node:assert/strict'
import dns, { lookup as systemLookup } from 'node:dns/promises'
import { stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, type LookupFunction } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { checkedLookup, publicAddresses, type Resolve } from '../../src/alerts/connecting.ts'
import { createOutbound, type OutboundOptions } from '../../src/alerts/outbound.ts'
import type { After } from '../support/folder.ts'
import { serve } from '../support/serving.ts'
import vectors from '../vectors/lnurl.json' with { type: 'json' }
import { aNameServer } from './name-server.ts'

const PUBLIC = { address: '93.184.216.34', family: 4 }
const PUBLIC_6 = { address: '2606:4700:4700::1111', family: 6 }
const LOOPBACK = { address: '127.0.0.1', family: 4 }
const NAME = 'pay.example.com'

function anOutbound(t: After, options: Partial<OutboundOptions> = {}) {
  const out = createOutbound({
    allowed: new Set(),
    host: { concurrent: 8, waiting: 64 },
    maxAnswerBytes: 1024,
    ...options,
  })
  t.after(() => out.close())
  return out
}

/** A way out that gives no look-up up, however long a busy machine takes. */
function aPatientOne(t: TestContext) {
  const { Resolver } = dns
  class Patient extends Resolver {
    constructor() {
      super({ timeout: 60_000, tries: 1 })
    }
  }
  t.mock.property(dns, 'Resolver', Patient)
  return anOutbound(t, { timeouts: { lookupMs: 60_000, waitMs: 60_000 } })
}

const post = (name: string, from = '') => ({
  url: new URL(`https://${name}/hook`),
  from,
  method: 'POST' as const,
  headers: {},
  body: '{}',
})

describe('the addresses of a name', () => {
  test('a name with any address that is not public is refused as a whole', async () => {
    for (const address of vectors.ssrf.ips.blocked) {
      const family = address.includes(':') ? 6 : 4
      for (const answers of [
        [{ address, family }],
        [PUBLIC, { address, family }],
        [{ address, family }, PUBLIC],
      ]) {
        const refused = publicAddresses(NAME, async () => answers)
        await assert.rejects(refused, { reason: 'not public' })
      }
    }
  })

  test('a name without an address leads nowhere, as does one that does not exist', async () => {
    await assert.rejects(
      publicAddresses(NAME, async () => []),
      { reason: 'nowhere' },
    )
    const missing = async (): Promise<never> => {
      throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' })
    }
    await assert.rejects(publicAddresses(NAME, missing), { reason: 'nowhere', code: 'ENOTFOUND' })
  })

  test('a socket gets the checked addresses of a name in both forms of answer, and those of no other', async () => {
    const checked = checkedLookup(() => [PUBLIC, PUBLIC_6])
    assert.deepEqual(await ask(checked, true), [PUBLIC, PUBLIC_6])
    assert.deepEqual(await ask(checked, false), PUBLIC)
    const unchecked = checkedLookup(() => {
      throw new Error('not checked')
    })
    await assert.rejects(ask(unchecked, true), /not checked/)
  })

  test('an answer that changes between the check and the connection changes nothing', async (t) => {
    // A proxy shows which address the connection goes to, and lets nothing leave the machine.
    const targets: (string | undefined)[] = []
    const proxy = createServer().on('connect', ({ url, headers }, socket) => {
      targets.push(url, headers['proxy-authorization'])
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
    })
    const { host } = new URL(await serve(t, proxy))
    let asked = 0
    const resolve: Resolve = async () => (asked++ === 0 ? [PUBLIC] : [LOOPBACK])
    const out = anOutbound(t, { resolve, proxy: new URL(`http://u:p%40ss@${host}`) })
    await assert.rejects(out.send(post(NAME)), { reason: 'unreachable' })
    const authorization = `Basic ${Buffer.from('u:p@ss').toString('base64')}`
    assert.deepEqual([targets, asked], [['93.184.216.34:443', authorization], 1])
    await assert.rejects(out.send(post(NAME)), { reason: 'not public' })
    assert.equal(targets.length, 2)
  })

  test('a socket tries the checked address itself', async () => {
    const attempted = await attemptedAddress(checkedLookup(() => [PUBLIC]))
    assert.equal(attempted, PUBLIC.address)
  })
})

describe('a name server that never answers', () => {
  test("silent name servers of strangers hold up neither the system's names nor its files", async (t) => {
    const names = await aNameServer(t, () => null)
    const out = aPatientOne(t)
    let ended = 0
    const silent = Array.from({ length: 84 }, (_, n) =>
      out.send(post(`n${n}.silent.com`, `buyer ${n}`)).catch(() => ended++),
    )
    await names.untilAsked(16)
    // `dns.lookup` and files share libuv's four threads.
    await systemLookup('localhost')
    await stat('.')
    assert.equal(ended, 0)
    assert.equal(names.asked.length, 16)
    await out.close()
    await Promise.all(silent)
  })

  test('a silent name is given up, and its caller is told that it took too long', async (t) => {
    await aNameServer(t, () => null)
    const out = anOutbound(t, { timeouts: { lookupMs: 100 } })
    await assert.rejects(out.send(post('silent.example.com')), { reason: 'too slow' })
  })

  test('who names silent servers waits behind their own look-ups, and nobody else does', async (t) => {
    const names = await aNameServer(t, (name) => (name === NAME ? '10.0.0.1' : null))
    const out = aPatientOne(t)
    const silent = Array.from({ length: 40 }, (_, n) =>
      out.send(post(`n${n}.silent.com`, 'one buyer')).catch(() => {}),
    )
    await names.untilAsked(2)
    // The address that it gives is refused, which shows that it was heard.
    await assert.rejects(out.send(post(NAME, 'another buyer')), { reason: 'not public' })
    assert.equal(names.asked.length, 3)
    await out.close()
    await Promise.all(silent)
  })

  test('who waits too long behind silent names is told so, and no call is left behind', async (t) => {
    await aNameServer(t, () => null)
    const out = anOutbound(t, { timeouts: { waitMs: 50, lookupMs: 200 } })
    const calls = Array.from({ length: 20 }, (_, n) => out.send(post(`n${n}.silent.com`, `${n}`)))
    const outcomes = await Promise.allSettled(calls)
    for (const outcome of outcomes) {
      assert.equal(outcome.status === 'rejected' && outcome.reason.reason, 'too slow')
    }
  })

  test('exempt servers are found by the names of the system', async (t) => {
    const names = await aNameServer(t, () => null)
    const server = createServer((_request, response) => void response.writeHead(204).end())
    await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    const host = `localhost:${(server.address() as AddressInfo).port}`
    const out = anOutbound(t, { allowed: new Set([host]) })
    const answer = await out.send({ ...post(NAME), url: new URL(`http://${host}/`) })
    assert.equal(answer.status, 204)
    assert.deepEqual(names.asked, [])
  })
})

function ask(lookup: LookupFunction, all: boolean): Promise<unknown> {
  return new Promise((resolve, reject) => {
    lookup(NAME, { all }, (error, address, family) => {
      if (error) reject(error)
      else if (typeof address === 'string') resolve({ address, family: family ?? 0 })
      else resolve(address)
    })
  })
}

/** The address that a socket tries. It is bound to loopback, so nothing ever leaves the machine. */
function attemptedAddress(lookup: LookupFunction): Promise<string> {
  return new Promise((resolve, reject) => {
    let attempted: string | null = null
    const socket = connect({ host: NAME, port: 443, lookup, localAddress: '127.0.0.1' })
    socket.on('connectionAttempt', (address: string) => {
      attempted = address
    })
    socket.on('error', (error) => {
      if (attempted === null) reject(error)
      else resolve(attempted)
    })
  })
}
