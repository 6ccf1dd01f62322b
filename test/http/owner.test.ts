import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import type { App } from '../../src/http/app.ts'
import { createOwner } from '../../src/http/owner.ts'

type Deps = Parameters<typeof createOwner>[1]

/** The routes of an owner, of whom only these parts matter. */
const anOwner = (app: App, deps: Partial<Deps>) =>
  createOwner(app, { kind: 'catch_owner', used: async () => undefined, ...deps } as Deps)

test('an answer is not sent before the use of the token is noted', async (t) => {
  const app = Fastify()
  t.after(() => app.close())
  const used = () => Promise.reject(new Error('the store is away'))
  const owner = anOwner(app, { used })
  const onRequest = async (request: FastifyRequest) => {
    request.owned = { public_id: 'a' }
  }
  app.get(
    '/',
    { onRequest },
    owner.answers(async () => () => 'secret'),
  )
  const { statusCode, body } = await app.inject('/')
  assert.equal(statusCode, 500)
  assert.ok(!body.includes('secret'))
})

test('a client that left before its wait began takes no place of those who listen', async () => {
  let places = 0
  const owner = anOwner(Fastify(), {
    listen: () => {
      places++
      return () => places--
    },
    streams: { longPoll: () => ({ wake() {}, end() {} }) } as unknown as Deps['streams'],
  })
  const raw = Object.assign(new EventEmitter(), { destroyed: true })
  await owner.waits(
    { owned: { public_id: 'a' } } as FastifyRequest,
    { raw } as unknown as FastifyReply,
    { ms: 1, work: async () => () => null },
  )
  assert.equal(places, 0)
})
