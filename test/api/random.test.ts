import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { METHODS } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { openOrder } from '../support/buying.ts'
import { anInbox, eventsOf, send } from '../support/catch.ts'
import { errorsLogged } from '../support/http.ts'
import { createRandom, type Random } from '../support/random.ts'
import { startServer, type TestServer } from '../support/server.ts'

const REQUESTS = process.env.MAYFLY_TEST_NIGHTLY === '1' ? 11_000 : 2_800
const AT_ONCE = 250
/** Short, as many a random request lacks its end; all of those wait at once. */
const TIMEOUTS = { timeouts: { requestMs: 1_000, headersMs: 1_000, checkEveryMs: 50 } }
/** Random headers may look like a proxy's, and behind an unknown one nothing is sold. */
const TRUSTING = { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }
/** A failure names its seed; put it here to see the same requests again. */
const SEED: number | null = null

test('random requests, some with random bytes in them, each get an answer, and none of them is our fault', async (t) => {
  const server = await startServer(t, TRUSTING)
  const seed = SEED ?? randomInt(2 ** 32)
  const random = createRandom(seed)
  const material = await aMaterial(server)
  await server.restart(TIMEOUTS)
  const tally = new Map<number, number>()
  const texts = Array.from({ length: REQUESTS }, () => {
    const ask = anAsk(random, material)
    return random.chance(0.9) ? textOf(ask, sendable) : mutated(random, textOf(ask))
  }).values()
  const client = async (): Promise<void> => {
    for (const text of texts) {
      const answer = await sendBytes(server.url, text)
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
      // A random X-Forwarded-For names no client, and none is sold to by the native way then.
      const isFine = status < 500 || (status === 503 && /x-forwarded-for/i.test(text))
      assert.ok(isFine, `seed ${seed}: ${answer.slice(0, 40)} to ${JSON.stringify(text)}`)
      tally.set(status, (tally.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  t.diagnostic(`seed ${seed}: ${JSON.stringify(Object.fromEntries(tally))}`)
  for (const status of [200, 204, 400, 401, 402, 404, 405]) {
    assert.ok(tally.has(status), `seed ${seed}: nothing random enough for ${status}`)
  }
  await server.restart()
  const inbox = await anInbox(server)
  assert.equal((await send(server, inbox, { method: 'POST', body: 'x' })).status, 204)
  assert.equal((await eventsOf(server, inbox)).length, 1)
  // A random X-Forwarded-For names no client, which is told once.
  const errors = errorsLogged(server).filter(({ event }) => event !== 'proxies.unknown')
  assert.deepEqual(errors, [])
})

type Ask = { method: string; path: string; headers: [string, string][]; body: string }

/** Real names and secrets, so that chance gets past the first check. */
type Material = {
  inboxes: CatchCapability[]
  orders: { key: string; orderId: string; bolt11: string }[]
}

async function aMaterial(server: TestServer): Promise<Material> {
  const eight = <T>(make: () => Promise<T>) => Promise.all(Array.from({ length: 8 }, make))
  const inboxes = await eight(() => anInbox(server, 'long'))
  for (const inbox of inboxes) await send(server, inbox, { method: 'POST' })
  return { inboxes, orders: await eight(() => openOrder(server)) }
}

function anAsk(random: Random, { inboxes, orders }: Material): Ask {
  const inbox = random.pick(inboxes)
  const { orderId, bolt11, key } = random.pick(orders)
  const [fitting, path] = random.pick<[method: string, path: string]>([
    ['GET', '/health'],
    ['GET', '/openapi.json'],
    ['GET', '/api/catalog'],
    ['POST', '/api/payments/catch'],
    ['POST', '/api/payments/catch'],
    ['GET', `/api/payments/${orderId}`],
    ['POST', '/simulator/pay'],
    ['POST', `/c/${inbox.publicId}`],
    ['PUT', `/c/${inbox.publicId}${random.pick(['/a/b', '//', '/%zz', '?x=1', '/x?y=%', '#z'])}`],
    ['GET', `/api/catch/${inbox.publicId}`],
    ['GET', `/api/catch/${inbox.publicId}/events`],
    ['GET', `/api/catch/${inbox.publicId}/events?${aQuery(random)}`],
    ['DELETE', `/api/catch/${inbox.publicId}/events/${randomUUID()}`],
    ['GET', noise(random, random.int(0, 40))],
  ])
  const method = random.chance(0.7) ? fitting : random.pick(METHODS)
  // Destroying is for once in a while, or nothing would be left to ask about.
  const isFatal = method === 'DELETE' && path === `/api/catch/${inbox.publicId}`
  const headers: [string, string][] = []
  for (let i = random.int(0, 5); i > 0; i--) headers.push(aHeader(random, inbox, key))
  return {
    method: isFatal && random.chance(0.9) ? 'GET' : method,
    path: random.chance(0.25) ? bent(random, path) : path,
    headers,
    body: random.pick([
      '',
      '',
      '{"planId":"spark"}',
      '{"planId":"long"}',
      `{"bolt11":"${bolt11}"}`,
      '{"bolt11":"lnbcrt1"}',
      '{"__proto__":{"planId":"spark"}}',
      '[[[[[[[[',
      '{"planId":',
      noise(random, random.int(0, 200)),
      noise(random, random.int(0, 6_000)),
      random.chance(0.05) ? 'x'.repeat(200_000) : 'x',
    ]),
  }
}

function aHeader(random: Random, inbox: CatchCapability, key: string): [string, string] {
  return random.pick<[string, string]>([
    ['content-type', 'application/json'],
    ['content-type', 'application/json'],
    [
      'content-type',
      random.pick(['text/plain', 'multipart/form-data', 'nonsense', '', '*/*', ';']),
    ],
    ['content-encoding', random.pick(['gzip', 'identity', 'br'])],
    ['idempotency-key', key],
    ['idempotency-key', randomUUID()],
    ['idempotency-key', noise(random, random.int(0, 140))],
    ['authorization', `Bearer ${inbox.ownerToken}`],
    ['authorization', `Bearer ${inbox.ownerToken}`],
    ['authorization', `Bearer ${inbox.ingestToken}`],
    ['authorization', `Bearer ${noise(random, 20)}`],
    ['authorization', random.pick(['Bearer', 'Payment e30', 'L402 a:b', 'LSAT a:b', 'Basic eDp5'])],
    ['x-payment-protocol', random.pick(['', 'payment', 'l402', 'barter'])],
    ['sec-purpose', 'prefetch'],
    ['origin', 'https://page.test'],
    ['access-control-request-method', 'GET'],
    ['access-control-request-headers', noise(random, 30)],
    ['x-forwarded-for', noise(random, 30)],
    ['expect', random.pick(['100-continue', 'nothing'])],
    ['upgrade', 'h2c'],
    ['range', 'bytes=0-1'],
    ['if-none-match', '*'],
    ['accept', noise(random, 20)],
    ['cookie', noise(random, 20)],
    ['__proto__', noise(random, 5)],
  ])
}

const NAMES = ['limit', 'cursor', 'access', 'method', 'contentType', 'q', '__proto__']
const VALUES = ['0', '1', '50', '51', '-1', '1e9', 'public', 'POST', 'x', '%', '%00']

function aQuery(random: Random): string {
  const part = (): string => {
    const name = random.pick(NAMES)
    const value = random.pick(VALUES)
    return random.chance(0.1) ? noise(random, 10) : `${name}=${value}`
  }
  return Array.from({ length: random.int(0, 4) }, part).join('&')
}

const PIECES = ['', '/', '//', '%', '%2F', '%00', '%zz', '..', '?', '#', ';', '\\', 'x']

/** The path with a character or a piece of it changed, taken out or put in. */
function bent(random: Random, path: string): string {
  const at = random.int(0, path.length + 1)
  const piece = random.pick(PIECES)
  return path.slice(0, at) + piece + path.slice(at + random.int(0, 3))
}

const asItIs = (text: string): string => text
/** Without what no client would let out. */
const sendable = (text: string): string => text.replaceAll(/[^\x21-\x7e]/g, '_')

/** The bytes of the request, each as a character. */
function textOf({ method, path, headers, body }: Ask, clean = asItIs): string {
  const bytes = Buffer.from(body).toString('latin1')
  const head = [
    `${method} ${path.startsWith('/') ? '' : '/'}${clean(path)} HTTP/1.1`,
    'Host: x',
    `Content-Length: ${bytes.length}`,
    ...headers.map(([name, value]) => `${name}: ${clean(value)}`),
  ]
  return `${head.join('\r\n')}\r\n\r\n${bytes}`
}

/** The text with other bytes here and there. */
function mutated(random: Random, text: string): string {
  let bent = text
  for (let i = 1 + random.int(0, 4); i > 0; i--) {
    const at = random.int(0, Math.min(bent.length, 400))
    const piece = random.pick(['\r\n', '\n', '\u0000', ' ', ':', '\u00ff', '\t', noise(random, 3)])
    bent = bent.slice(0, at) + piece + bent.slice(at + random.int(0, 4))
  }
  return bent
}

/** The first that comes back; an incomplete request is answered when its time is over. */
function sendBytes(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(text, 'latin1'))
    socket.setEncoding('latin1')
    socket.on('data', (part: string) => {
      const answer = part.replace('HTTP/1.1 100 Continue\r\n\r\n', '')
      if (answer === '') return
      resolve(answer)
      socket.destroy()
    })
    // The server may hang up on what comes after its refusal; the refusal is what counts.
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(''))
  })
}

/** Mostly ASCII, with what parsers stumble over. */
const CHARACTERS = [...'abcXYZ019/%?#&=+.;:,"\'\\{}[]<> \t\u0000\u007f\u00e9\u00ff\ufeff⚡']

const noise = (random: Random, length: number): string =>
  Array.from({ length }, () => random.pick(CHARACTERS)).join('')
