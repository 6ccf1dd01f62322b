/**
 * The owner's routes for alerts: set and test their destinations, see what was sent. A product says where they
 * are mounted and what a test tells.
 */

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Alerts } from '../../alerts/alerts.ts'
import type { Destination, SetDestination, Wanted } from '../../alerts/destinations.ts'
import type { ToldRow } from '../../alerts/store.ts'
import type { Statement } from '../../db/db.ts'
import { type AlertContent, calledUrl } from '../../lib/alert-formats.ts'
import { rfc3339 } from '../../lib/clock.ts'
import { problem } from '../errors.ts'
import { LIMITS, type Limits } from '../limits.ts'
import type { Owner } from '../owner.ts'
import { NoContent } from '../schemas.ts'
import { AlertSettings, AlertsSet, AlertsStatus } from './schema.ts'
import { readDestinations } from './settings.ts'

/** Fits three of the longest destinations with every character escaped. */
const MAX_BODY_BYTES = 48 * 1024

/** What the product adds: where its alerts are, and in which words. */
export type AlertRoutes<Row> = {
  /** Such as `/api/pulse/:publicId/alerts`. */
  path: string
  /** Ends the ids of the operations, which are `get…`, `set…` and `delete…`. */
  operations: string
  /** Whose alerts they are, in summaries: `a monitor`. */
  whose: string
  /** What a test tells. */
  test(row: Row): AlertContent
  /** Holds while the owner may set destinations. Locks the owner's row. */
  guard(row: Row): Statement
}

export function mountAlerts<Row extends { public_id: string }>(
  deps: { alerts: Alerts; limits: Limits; owner: Owner<Row> },
  { path, operations, whose, test, guard }: AlertRoutes<Row>,
): void {
  const { alerts, limits, owner } = deps
  const { destinations } = alerts

  async function requireOn(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await owner.changeable(request, reply)
    if (!alerts.isOn) throw problem('alerts unavailable')
  }

  /** Tests go to strangers, so an owner has few, and so has each address of a stranger. */
  async function takeTests(id: string, wanted: Wanted[], reply: FastifyReply) {
    for (const one of wanted) {
      if (one.format !== 'inbox') {
        const called = calledUrl(one.format, one.url)
        const { host, pathname } = 'url' in called ? called.url : one.url
        await limits.take(LIMITS.alertTestTarget, host + pathname, reply)
      }
      await limits.take(LIMITS.alertTest, id, reply)
    }
  }

  owner.mount(
    ['GET', path],
    {
      isInWholeOnly: true,
      operationId: `get${operations}`,
      summary: `Where the alerts of ${whose} go, and what was sent`,
      description:
        '`deliveries` has what was sent in the last 24 hours, and what waits for its next try.',
      response: { 200: AlertsStatus },
    },
    owner.answers(async ({ public_id: id }) => {
      const [list, told] = await Promise.all([destinations.list(id), destinations.told(id)])
      return () => ({
        destinations: list.map(destinationOf),
        deliveries: told.map(deliveryOf),
      })
    }),
  )
  owner.mount(
    ['DELETE', path],
    {
      isInWholeOnly: true,
      operationId: `delete${operations}`,
      summary: 'Forget all destinations and what waits for them',
      description: 'Deletes all destinations.',
      response: { 204: NoContent },
    },
    owner.removes(async ({ public_id: id }) => {
      await destinations.remove(id)
      return true
    }),
  )
  owner.mount<{ Body: AlertSettings }>(
    ['PUT', path],
    {
      isInWholeOnly: true,
      operationId: `set${operations}`,
      summary: 'Set at most three destinations, and test those that no test has reached',
      description:
        'Replaces all destinations: `{"id"}` stands for one that is set. One gets alerts only after it has answered a test; to test again, set the same. `secret` is in this answer alone.',
      body: AlertSettings,
      response: { 200: AlertsSet },
      errors: ['invalid destinations', 'alerts unavailable'],
      route: {
        onRequest: requireOn,
        bodyLimit: MAX_BODY_BYTES,
        config: { invalid: { body: 'invalid destinations' } },
      },
    },
    owner.answers(async (row, request, reply) => {
      const { public_id: id } = row
      const wanted = await readDestinations(request.body, {
        alerts,
        ownerId: id,
      })
      await takeTests(id, await destinations.untested(id, wanted), reply)
      const set = await destinations.set(id, { wanted, guard: guard(row), test: test(row) })
      if (!set) throw problem('not found')
      return () => ({ destinations: set.map(setOf) })
    }),
  )
}

const destinationOf = ({ id, format, host, state, isPrivate }: Destination) => ({
  id,
  format,
  host,
  state,
  ...(isPrivate ? { opensAt: true } : {}),
})

const setOf = (destination: SetDestination) => ({
  ...destinationOf(destination),
  secret: destination.secret,
  test: destination.test,
})

const deliveryOf = (alert: ToldRow): AlertsStatus['deliveries'][number] => ({
  messageId: alert.message_id,
  destinationId: alert.destination_id,
  type: alert.type,
  happenedAt: rfc3339(alert.occurred_at),
  triedAt: alert.attempted_at === null ? null : rfc3339(alert.attempted_at),
  outcome: alert.outcome,
  attempts: alert.attempts,
  nextTryAt: alert.next_at === null ? null : rfc3339(alert.next_at),
})
