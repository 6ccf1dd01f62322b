/** The one way out: whom it calls, how much it reads, and how long it waits. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { createOutbound, type OutboundOptions } from '../../src/alerts/outbound.ts'
import { leadsTo } from '../../src/alerts/outbound-rules.ts'
import type { After } from '../support/folder.ts'
import { serve } from '../support/serving.ts'

const PUBLIC = [{ address: '93.184.216.34', family: 4 }]
const NAME = new URL('https://hooks.example.com/x')

/** Serves until the test ends. Its host and port. */
const listening = async (t: After, served: Parameters<typeof serve>[1]) =>
  new URL(await serve(t, served)).host

function anOutbound(t: After, options: Partial<OutboundOptions> = {}) {
  const out = createOutbound({
    allowed: new Set(),
    host: { concurrent: 8, waiting: 8 },
    maxAnswerBytes: 1024,
    resolve: async () => PUBLIC,
    ...options,
  })
  t.after(() => out.close())
  return out
}

/** A receiver that is exempt from the rules, and a way out to it. */
async function aReceiver(
  t: After,
  answer: RequestListener,
  options: Partial<OutboundOptions> = {},
) {
  const host = await listening(t, answer)
  const out = anOutbound(t, { allowed: new Set([host]), ...options })
  return { post: () => out.send({ ...POST, url: new URL(`http://${host}/hook`) }) }
}

/** For an answer that never comes: else a busy machine has all the time that it needs. */
const HURRIED = { timeouts: { connectMs: 500, silenceMs: 500, overallMs: 500 } }

const POST = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{}',
} as const

describe('whom the way out never calls', () => {
  const rows: { note: string; url: string; reason: string; options?: Partial<OutboundOptions> }[] =
    [
      { note: 'plain http', url: 'http://hooks.example.com/', reason: 'not public' },
      { note: 'another port', url: 'https://hooks.example.com:8443/', reason: 'not public' },
      { note: 'an address', url: 'https://93.184.216.34/', reason: 'not public' },
      { note: 'a user in the URL', url: 'https://u:p@hooks.example.com/', reason: 'not public' },
      {
        note: 'a name inside of a network',
        url: 'https://metadata.internal/',
        reason: 'not public',
      },
      {
        note: 'a public name of a private address',
        url: NAME.href,
        reason: 'not public',
        options: { resolve: async () => [{ address: '169.254.169.254', family: 4 }] },
      },
      {
        note: 'this service',
        url: 'https://mayfly.example.com/c/catch_x',
        reason: 'ourselves',
        options: { isOurselves: leadsTo(() => 'https://mayfly.example.com') },
      },
      {
        note: 'a name that the operator blocks',
        url: NAME.href,
        reason: 'blocked',
        options: { blocked: new Set(['hooks.example.com']) },
      },
      {
        note: 'a name below one that the operator blocks',
        url: NAME.href,
        reason: 'blocked',
        options: { blocked: new Set(['example.com']) },
      },
    ]
  for (const { note, url, reason, options } of rows) {
    test(`the way out never calls ${note}`, async (t) => {
      const out = anOutbound(t, options)
      await assert.rejects(out.send({ ...POST, url: new URL(url) }), { reason })
    })
  }

  test('the way out never calls this service, even if its address is exempt for tests', async (t) => {
    const host = await listening(t, (_request, response) => void response.end())
    const own = { allowed: new Set([host]), isOurselves: leadsTo(() => `http://${host}`) }
    const url = new URL(`http://${host}/`)
    await assert.rejects(anOutbound(t, own).send({ ...POST, url }), { reason: 'ourselves' })
  })
})

describe('what a server may answer', () => {
  test('the way out follows no redirect', async (t) => {
    let requests = 0
    const { post } = await aReceiver(t, (_request, response) => {
      requests++
      response.writeHead(307, { location: '/elsewhere' }).end()
    })
    assert.equal((await post()).status, 307)
    assert.equal(requests, 1)
  })

  test('the way out reads no megabyte, and still says the status', async (t) => {
    const { post } = await aReceiver(t, (_request, response) => {
      response.on('error', () => {})
      response.end(Buffer.alloc(1024 * 1024))
    })
    await assert.rejects(post(), { reason: 'too large', status: 200 })
  })

  test('the way out waits no longer than its time for a server that hangs', async (t) => {
    const { post } = await aReceiver(t, () => undefined, HURRIED)
    await assert.rejects(post(), { reason: 'too slow', status: null })
  })

  test('the way out waits no longer than its time for a server that sends a byte now and then', async (t) => {
    const answer: RequestListener = (_request, response) => {
      const timer = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(timer))
    }
    const overallMs = 12_345
    const { post } = await aReceiver(t, answer, { timeouts: { overallMs } })
    // Its time is over once the head of the answer is read.
    const time = new AbortController()
    const { timeout } = AbortSignal
    t.mock.method(AbortSignal, 'timeout', (ms: number) =>
      ms === overallMs ? time.signal : timeout(ms),
    )
    const end = () => setImmediate(() => time.abort(new DOMException('over', 'TimeoutError')))
    subscribe('undici:request:headers', end)
    t.after(() => unsubscribe('undici:request:headers', end))
    await assert.rejects(post(), { reason: 'too slow', status: 200 })
  })
})

describe("the operator's proxy", () => {
  /** A proxy that leads every tunnel to one server, and notes what it was asked for. */
  async function aProxy(t: After, { refuses = false } = {}) {
    const asked: (string | undefined)[] = []
    const proxy = createServer()
    proxy.on('connect', ({ url }, socket: Socket) => {
      asked.push(url)
      socket.on('error', () => {})
      // It ends the tunnel at once: what matters is where it was to lead.
      socket.end(`HTTP/1.1 ${refuses ? '407 Proxy Authentication Required' : '200 OK'}\r\n\r\n`)
    })
    return { host: await listening(t, proxy), asked }
  }

  test('a proxy that refuses is a server that cannot be reached', async (t) => {
    const { host } = await aProxy(t, { refuses: true })
    const out = anOutbound(t, { proxy: new URL(`http://${host}`) })
    const refused = { reason: 'unreachable', code: 'PROXY_407' }
    await assert.rejects(out.send({ ...POST, url: NAME }), refused)
  })

  test('an exempt server is reached without the proxy', async (t) => {
    const { host, asked } = await aProxy(t)
    const receiver = await listening(t, (_request, response) => void response.end())
    const out = anOutbound(t, {
      proxy: new URL(`http://${host}`),
      allowed: new Set([receiver]),
    })
    assert.equal((await out.send({ ...POST, url: new URL(`http://${receiver}/`) })).status, 200)
    assert.deepEqual(asked, [])
  })
})

test('a host that is busy holds up no other', async (t) => {
  const silent = await listening(t, () => {})
  const other = await listening(t, (_request, response) => response.end())
  const out = anOutbound(t, { allowed: new Set([silent, other]) })
  const call = (host: string) => out.send({ ...POST, url: new URL(`http://${host}/hook`) })
  const busy = Array.from({ length: 17 }, () => call(silent))
  await assert.rejects(busy[16] ?? Promise.resolve(), { reason: 'too busy' })
  assert.equal((await call(other)).status, 200)
  await Promise.all([Promise.allSettled(busy), out.close()])
})
