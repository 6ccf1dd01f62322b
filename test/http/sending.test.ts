import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import Fastify from 'fastify'
import { pino } from 'pino'
import { createApp } from '../../src/http/app.ts'
import { createMemory } from '../../src/http/memory.ts'
import { streamParts, withDisconnectSignal } from '../../src/http/sending.ts'

test('a client that leaves ends the work of its request, and of no other', async () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const signals: AbortSignal[] = []
  await withDisconnectSignal(response, async (signal) => signals.push(signal))
  const failing = withDisconnectSignal(response, async (signal) => {
    signals.push(signal)
    throw new Error('the store is away')
  })
  await assert.rejects(failing, /store is away/)
  const underWay = withDisconnectSignal(response, async (signal) => {
    signals.push(signal)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  response.destroy()
  response.emit('close')
  await underWay
  const late = await withDisconnectSignal(response, async (signal) => signal.aborted)
  assert.deepEqual([...signals.map(({ aborted }) => aborted), late], [false, false, true, true])
  assert.equal(response.listenerCount('close'), 0)
})

test('an answer whose later part fails breaks off, so that nobody takes it for a whole one', async (t) => {
  const memory = createMemory(() => 'a network')
  const app = Fastify().get('/', (_request, reply) =>
    streamParts(reply, memory.forAnswer(reply, 'a capability'), {
      first: Buffer.from('[1,'),
      // biome-ignore lint/correctness/useYield: it fails before.
      rest: (async function* (): AsyncGenerator<Buffer, Buffer> {
        throw new Error('the store is away')
      })(),
    }),
  )
  t.after(() => app.close())
  const answer = await fetch(await app.listen({ host: '127.0.0.1', port: 0 }))
  assert.equal(answer.status, 200)
  await assert.rejects(answer.text())
})

test('whoever reads a large answer makes progress with each slice, and so is not the slowest', async (t) => {
  const memory = createMemory(() => 'a network')
  const app = await createApp({ log: pino({ level: 'silent' }) })
  t.after(() => app.close())
  const taken: number[] = []
  app.get('/', (_request, reply) => {
    const reservation = memory.forAnswer(reply, 'a capability')
    reservation.progressed = () => void taken.push(taken.length)
    return Buffer.alloc(256 * 1024)
  })
  const answer = await fetch(await app.listen({ host: '127.0.0.1', port: 0 }))
  assert.equal((await answer.arrayBuffer()).byteLength, 256 * 1024)
  assert.equal(taken.length, 4)
})
