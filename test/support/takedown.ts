/** The operator suspends and resumes capabilities, beside the service. */
import assert from 'node:assert/strict'
import { isId } from '../../src/lib/ids.ts'
import { SOLD_FACTS } from '../../src/service/products.ts'
import { resume, suspend, type Target } from '../../src/service/takedowns.ts'
import type { TestServer } from './server.ts'
import { openDatabase } from './store.ts'

type Of = Pick<TestServer, 'databaseUrl' | 'clock'>

export async function suspendAt(
  { databaseUrl, clock }: Of,
  publicId: string,
  reason = '',
): Promise<void> {
  const db = await openDatabase(databaseUrl)
  const isDone = await suspend(db, targetOf(publicId), { reason, now: clock.now() })
  await db.close()
  assert.ok(isDone, `${publicId} was not suspended`)
}

export async function resumeAt({ databaseUrl, clock }: Of, publicId: string): Promise<void> {
  const db = await openDatabase(databaseUrl)
  const done = await resume(db, targetOf(publicId), clock.now())
  await db.close()
  assert.equal(done, 'resumed')
}

function targetOf(publicId: string): Target {
  const facts = SOLD_FACTS.find(({ takedown }) => isId(takedown.kind, publicId))
  assert.ok(facts)
  return { publicId, product: facts.name, takedown: facts.takedown }
}
