/** The outbox of alerts in a store of its own, for tests of its statements. */
import assert from 'node:assert/strict'
import type { Alert } from '../../src/alerts/store.ts'
import {
  type AlertRow,
  activate,
  claimDestination,
  createAlertStore,
  type DestinationRow,
  insertDestination,
  type releaseDestination,
} from '../../src/alerts/store.ts'
import type { After } from './folder.ts'
import { aDatabase } from './store.ts'
import { unit } from './unit.ts'

export const NOW = 1_800_000_000_000
export const MINUTE = 60_000
export const bytes = (byte: number): Uint8Array => new Uint8Array([byte])

export const anAlert = (): Alert => ({
  type: 'pulse.late',
  occurredAt: NOW,
  replaces: true,
  content: { data: {}, title: 't', text: 'x', isUrgent: false },
})

/** One that is told a minute after it happened. */
export const LATER: Alert = { ...anAlert(), notBefore: NOW + MINUTE }

export const END: Parameters<typeof releaseDestination>[1] = {
  done_position: 0,
  attempts: 0,
  state: 'active',
  not_before: 0,
  day_started_at: 0,
  day_count: 0,
  nextAt: NOW,
}

export const claim = (id: string, now = NOW, until = now + MINUTE) =>
  claimDestination(id, { now, until })

export const destination = (
  id: string,
  owner: string,
  { place = 0, host = `host of ${owner}` } = {},
) =>
  insertDestination({
    is_private: 0,
    destination_id: id,
    owner_id: owner,
    place,
    format: 'standard',
    host,
    sealed_target: bytes(1),
    sealed_secret: bytes(2),
  })

/** Destinations are named by their owner and their place, as `a 0`. */
export async function aStore(t: After) {
  const db = await aDatabase(t)
  const store = createAlertStore(db)
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  const untested = async (...ids: string[]) => {
    for (const id of ids) await run(destination(id, id.slice(0, 1), { place: Number(id.slice(2)) }))
  }
  const add = async (...ids: string[]) => {
    await untested(...ids)
    for (const id of ids) await run(activate(id))
  }
  const all = () =>
    db.read<DestinationRow>('select * from alert_destination order by destination_id')
  /** All alerts of a destination, those that have ended too. */
  const alerts = (id: string): Promise<AlertRow[]> =>
    db.read<AlertRow>('select * from alert where destination_id = $1 order by position', id)
  return {
    db,
    store,
    run,
    add: Object.assign(add, { untested }),
    alerts,
    row: async (id: string) =>
      (await all()).find((one) => one.destination_id === id) ?? assert.fail('it is gone'),
    dueAt: async () =>
      Object.fromEntries((await all()).map((one) => [one.destination_id, one.due_at])),
    /** Each destination and each of its alerts, also of one that is gone. */
    told: async () =>
      (
        await db.read<{ destination_id: string; message_id: string }>(
          'select destination_id, message_id from alert order by destination_id, position',
        )
      ).map((one) => `${one.destination_id}: ${one.message_id}`),
  }
}
