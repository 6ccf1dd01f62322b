import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { WhisperCapability } from '../../src/client/index.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import { startServer } from '../support/server.ts'
import { aDatabaseUrl, holds } from '../support/store.ts'
import { until } from '../support/until.ts'
import {
  type Answer,
  aWhisper,
  openWhisperOrder,
  purchaseWhisper,
  read,
} from '../support/whisper.ts'

const READS = 7
const KEY = '0d1b6c5e-8f53-4b1c-9a51-2f1d6a3b7c11'
/** What one reader may ask for in a minute is counted elsewhere. */
const UNLIMITED = { MAYFLY_RATE_LIMITS: 'off' }
const REFUSALS = [
  { status: 404, text: '{"error":"not found"}' },
  { status: 429, text: '{"error":"rate limited"}' },
]
const MARKER = 'MARKERMARKERMARKERMARKERMARKERMARKER'

test('exactly seven of 100 readers get the bytes of a whisper with seven reads, the others nothing', async (t) => {
  const server = await startServer(t)
  const body = randomBytes(200_000)
  const whisper = await aWhisper(server, { plan: 'standard', readLimit: READS, body })
  const answers = await Promise.all(Array.from({ length: 100 }, () => read(server, whisper)))
  assert.equal(revealed(answers, body) + (await readOut(server, whisper, body)), READS)
})

/** SQLite's file has one service. */
const onPostgres = process.env.MAYFLY_TEST_ENGINE === 'postgres' ? test : () => undefined

onPostgres('two servers on one store hand out no read twice', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const [one, two] = [
    await startProgram(t, databaseUrl, { environment: UNLIMITED }),
    await startProgram(t, databaseUrl, { environment: UNLIMITED }),
  ]
  const body = randomBytes(40_000)
  const whisper = await aWhisper(one, { plan: 'standard', readLimit: READS, body })
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) => read(i % 2 === 0 ? one : two, whisper)),
  )
  assert.equal(revealed(answers, body) + (await readOut(one, whisper, body)), READS)
})

test('a service killed while 100 read hands out no more after a restart than were left', async (t) => {
  const databaseUrl = await aDatabaseUrl(t)
  let program = await startProgram(t, databaseUrl, { environment: UNLIMITED })
  const body = randomBytes(200_000)
  const whisper = await aWhisper(program, {
    plan: 'standard',
    readLimit: READS,
    body,
  })
  let killing: Promise<void> | null = null
  const first = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const answer = await read(program, whisper).catch(() => null)
      // As soon as some are served, while the others are under way.
      if (answer?.status === 200) killing ??= program.kill()
      return answer
    }),
  )
  await killing
  const before = revealed(
    first.filter((answer) => answer !== null),
    body,
  )
  assert.ok(before >= 1)
  program = await startProgram(t, databaseUrl, { environment: UNLIMITED })
  const second = await Promise.all(Array.from({ length: 50 }, () => read(program, whisper)))
  const after = revealed(second, body) + (await readOut(program, whisper, body))
  // A read that was spent for an answer that the kill cut off is spent.
  assert.ok(before + after <= READS)
})

test('no byte of a whisper is in the store after the last read', async (t) => {
  const server = await startServer(t)
  // Over many pages, and in the log as well as in the database.
  const body = Buffer.from(MARKER.repeat(4_000))
  const whisper = await aWhisper(server, { plan: 'standard', readLimit: 2, body })
  await server.restart()
  assert.equal((await read(server, whisper)).status, 200)
  assert.ok(await holds(server, MARKER), 'while it can be read it is there')
  assert.equal((await read(server, whisper)).status, 200)
  await server.stop()
  assert.ok(!(await holds(server, MARKER)))
})

test('no byte of a whisper is in the store after its quote is dead', async (t) => {
  const server = await startServer(t)
  const ask = { key: KEY, plan: 'standard', body: Buffer.from(MARKER.repeat(4_000)) }
  await openWhisperOrder(server, ask)
  await server.restart()
  assert.ok(await holds(server, MARKER))
  server.clock.advance(16 * 60_000)
  // The server's own pass over open orders may be the one that asks the node.
  await until('the quote is dead', async () => (await purchaseWhisper(server, ask)).status === 404)
  await server.stop()
  assert.ok(!(await holds(server, MARKER)))
})

/**
 * How many of the answers have the bytes. The others have none: no read was left, or they had to wait
 * behind too many others and were told to come back.
 */
function revealed(answers: Answer[], body: Buffer): number {
  const successes = answers.filter(({ status }) => status === 200)
  for (const answer of successes) assert.ok(answer.body.equals(body))
  for (const { status, text } of answers.filter((answer) => !successes.includes(answer))) {
    assert.ok(REFUSALS.some((refusal) => refusal.status === status && refusal.text === text))
  }
  return successes.length
}

/** Reads one at a time until no read is left; how many there were. */
async function readOut(
  shop: { url: string },
  whisper: WhisperCapability,
  body: Buffer,
): Promise<number> {
  for (let count = 0; ; count++) {
    const answer = await read(shop, whisper)
    if (answer.status === 404) return count
    assert.equal(answer.status, 200, answer.text)
    assert.ok(answer.body.equals(body))
  }
}
