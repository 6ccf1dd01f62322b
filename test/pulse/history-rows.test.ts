import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timeText } from '../../src/lib/time-list.ts'
import { chunkBefore } from '../../src/pulse/history-rows.ts'
import type { MonitorRow } from '../../src/pulse/store.ts'

/** The times from `newest` down to `oldest`, as a row has them. */
const texts = (newest: number, oldest: number): string =>
  Array.from({ length: newest - oldest + 1 }, (_, i) => timeText(newest - i)).join('')

/** A monitor with the pings 1, 2, 3 and so on, of which so many are in chunks of a hundred. */
const aMonitor = (pings: number, chunks: number) =>
  ({
    ...{ accepted_heartbeat_count: pings + 3, untimed_heartbeat_count: 3, chunk_count: chunks },
    recent_heartbeats: texts(pings, Math.max(1, pings - 99)),
  }) as MonitorRow

test('a chunk has the oldest hundred of the pings in none, once a row cannot hold them all', () => {
  assert.equal(chunkBefore(aMonitor(99, 0), [100]), null)
  assert.deepEqual(chunkBefore(aMonitor(100, 0), [101]), { position: 0, times: texts(100, 1) })
  assert.deepEqual(chunkBefore(aMonitor(99, 0), [100, 101]), { position: 0, times: texts(100, 1) })
  assert.equal(chunkBefore(aMonitor(150, 1), [151, 152]), null)
  assert.deepEqual(chunkBefore(aMonitor(198, 1), [199, 200, 201]), {
    ...{ position: 1, times: texts(200, 101) },
  })
})
