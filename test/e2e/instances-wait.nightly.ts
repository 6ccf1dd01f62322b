/** Requests that wait at one instance for what happens at another, or beside both. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { CatchCapability, EventPage } from '../../src/client/index.ts'
import { poll, purchase, quoteOf } from '../support/buying.ts'
import { runCommand } from '../support/command.ts'
import { type Fleet, SECRET, twoInstances } from '../support/instances.ts'
import { aPostgresDatabase } from '../support/postgres.ts'

/** By looking every 5 seconds, so many waits would take minutes. */
const WAITS = 60
const GIVE_UP_MS = 240_000

test('an event at one instance answers at once who waits at the other, and none is missed', async (t) => {
  const { fleet, inbox, wait } = await anInbox(t)
  for (let after = 0; after < WAITS; after++) {
    const answer = wait(`after=${after}`)
    await fetch(`${fleet.a.url}/c/${inbox.publicId}`, { method: 'POST', body: String(after) })
    const { status, page } = await answer
    assert.deepEqual([status, page?.events.map(({ sequence }) => sequence)], [200, [after + 1]])
  }
  const last = wait(`after=${WAITS}`)
  await fleet.a.mayfly.catch(inbox).destroy()
  assert.equal((await last).status, 401)
})

test('who waits is told that the operator has suspended the inbox', async (t) => {
  const { inbox, wait, database } = await anInbox(t)
  const answer = wait('after=0')
  const settings = { MAYFLY_DATABASE_URL: database, MAYFLY_SECRET: SECRET }
  const command = ['takedown', 'suspend', inbox.publicId, '--reason', 'case 17']
  assert.equal((await runCommand(command, settings)).code, 0)
  const { status, page } = await answer
  assert.deepEqual([status, page?.events], [200, []])
})

type Waiting = {
  fleet: Fleet
  database: string
  inbox: CatchCapability
  /** The answer of the second instance to a request that waits. */
  wait(query: string): Promise<{ status: number; page: EventPage | null }>
}

async function anInbox(t: TestContext): Promise<Waiting> {
  const database = await aPostgresDatabase()
  const fleet = await twoInstances(t, database)
  const quote = quoteOf(await purchase(fleet.a, { target: '/api/payments/catch' }))
  await fleet.pay(quote)
  const inbox = JSON.parse((await poll(fleet.b, quote.orderId)).text).resource as CatchCapability
  const signal = AbortSignal.timeout(GIVE_UP_MS)
  return {
    ...{ fleet, database, inbox },
    async wait(query) {
      const path = `/api/catch/${inbox.publicId}/events?wait=30&${query}`
      const answer = await fetch(fleet.b.url + path, {
        signal,
        headers: { authorization: `Bearer ${inbox.ownerToken}` },
      })
      const { status } = answer
      return { status, page: status === 200 ? ((await answer.json()) as EventPage) : null }
    },
  }
}
