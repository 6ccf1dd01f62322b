/** The parts of /mcp that bound and name things. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { suite, test } from 'node:test'
import Fastify, { type FastifyReply } from 'fastify'
import { pino } from 'pino'
import type { App } from '../../../src/http/app.ts'
import type { Limits } from '../../../src/http/limits.ts'
import { createMemory } from '../../../src/http/memory.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createCalls, mountMcp } from '../../../src/tools/remote/endpoint.ts'
import { createOwnRequests, Unanswered } from '../../../src/tools/remote/own-requests.ts'
import { createPurchaseIds } from '../../../src/tools/remote/purchase-id.ts'
import { message } from '../../support/mcp.ts'
import { until } from '../../support/until.ts'

const PING = {
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body: message('ping'),
}

suite('the names of purchases', () => {
  const key = randomBytes(32)

  test('each name of a purchase is another one, and the service knows it for its own', () => {
    const ids = createPurchaseIds([key])
    const made = Array.from({ length: 2_000 }, ids.make)
    assert.equal(new Set(made).size, made.length)
    for (const id of made) assert.ok(ids.isOwn(id), id)
    for (const other of ['', 'x', '0'.repeat(33), `${made[0]}0`, randomUUID()]) {
      assert.ok(!ids.isOwn(other), other)
    }
  })

  test('the name of a purchase by another secret is unknown, and one by the previous secret is known', () => {
    const id = createPurchaseIds([key]).make()
    assert.ok(!createPurchaseIds([randomBytes(32)]).isOwn(id))
    assert.ok(createPurchaseIds([randomBytes(32), key]).isOwn(id))
  })
})

suite('the requests under way', () => {
  test('the requests under way are 64 for a network and 512 in all, and an end counts once', () => {
    const calls = createCalls()
    const first = calls.begin('a')
    assert.ok(first)
    const begun = (network: string): number => {
      let count = 0
      while (calls.begin(network)) count++
      return count
    }
    assert.deepEqual([begun('a'), begun('a')], [63, 0])
    const others = Array.from({ length: 20 }, (_, n) => begun(`${n}`))
    assert.equal(
      others.reduce((a, b) => a + b),
      448,
    )
    first()
    first()
    assert.deepEqual([begun('a'), begun('b')], [1, 0])
  })

  test('the requests under way are none of clients that left while their limits were looked up', async (t) => {
    const app = Fastify()
    t.after(() => app.close())
    const memory = createMemory(() => '192.0.2')
    let lookUp: (reply: FastifyReply) => Promise<unknown> = async () => undefined
    mountMcp(app, {
      publicUrl: () => url,
      clientAddress: () => '192.0.2.1',
      limits: { take: (_limit, _key, reply) => lookUp(reply) } as Limits,
      memory,
      clock: systemClock,
      log: pino({ level: 'silent' }),
      keys: [],
    })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    for (let left = 0; left < 64; left++) {
      const leaving = new AbortController()
      const looked = Promise.withResolvers<void>()
      lookUp = async (reply) => {
        leaving.abort()
        await once(reply.raw, 'close')
        looked.resolve()
      }
      const { signal } = leaving
      await assert.rejects(fetch(`${url}/mcp`, { method: 'POST', ...PING, signal }))
      await looked.promise
    }
    lookUp = async () => undefined
    assert.equal((await fetch(`${url}/mcp`, { method: 'POST', ...PING })).status, 200)
    await until('nothing is held', () => memory.bytesByKind().message === 0)
  })
})

const MB = 1024 * 1024

test('a request of the service to itself takes an answer of 64 MiB, and no byte more', async () => {
  for (const extra of [0, 1]) {
    const server = createServer((_request, response) => {
      for (let i = 0; i < 64; i++) response.write(Buffer.alloc(MB))
      response.end(Buffer.alloc(extra))
    })
    const ask = createOwnRequests({ server } as unknown as App)
    const { signal } = new AbortController()
    const asked = ask({ peer: '', forwarding: {}, signal }, { method: 'GET', path: '/' })
    if (extra === 0) assert.equal((await asked).bytes.length, 64 * MB)
    else await assert.rejects(asked, Unanswered)
  }
})
