import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { type Service, startService, storeAt } from '../faults/service.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'
import { debianClusters } from './debian.ts'
import { BIN, programOf } from './versions.ts'

/** What is upgraded from: before the first release, this baseline itself. Another one: `DRILL_PREVIOUS=<commit> npm run drill:upgrade`. */
const PREVIOUS = process.env.DRILL_PREVIOUS?.split(',') ?? ['HEAD']
const PROMISES = 150
const LATENESSES = 10

async function previousInstances(t: TestContext, commit: string) {
  const bin = await programOf(t, commit)
  const { url } = await (await debianClusters(t)).primary()
  return { url, service: await startService(t, storeAt(url), { instances: 2, bin }) }
}

/** Whoever is late has something to tell, which is stored with the ping that ends it. */
const LATE = `update pulse_monitor set late_since = last_ping_at + 1, is_silent = 1, revision = revision + 1
  where late_since is null and last_ping_at is not null returning public_id`

/** The old version does not write sales. The new one adds what is missing, twice a minute. */
const UNRECORDED = `select 1 as n from purchase_order o where o.state = 'settled'
  and not exists (select 1 from sale s where s.payment_hash = o.payment_hash) limit 1`

/** Stops a process as an upgrade does. */
async function stop({ programs }: Service, place: number): Promise<void> {
  const program = programs[place]
  programs[place] = null
  program?.signal('SIGTERM')
  await program?.ended
}

/** The answers of each status since the last call. */
function answersOf({ load: { statuses } }: Service): () => string {
  let before = new Map(statuses)
  return () => {
    const now = [...statuses].sort()
    const text = now.map(([status, n]) => `${n - (before.get(status) ?? 0)} × ${status}`).join(', ')
    before = new Map(statuses)
    return text
  }
}

const seconds = (from: number): string => ((performance.now() - from) / 1000).toFixed(1)

for (const commit of PREVIOUS) {
  suite(`an upgrade from ${commit} under mixed load`, { timeout: 600_000 }, () => {
    test('one instance after the other, nothing that was answered is lost or doubled', async (t) => {
      const { url, service } = await previousInstances(t, commit)
      await service.progress(PROMISES)
      const answers = answersOf(service)
      await stop(service, 0)
      const from = performance.now()
      await service.start(0, BIN)
      t.diagnostic(`the first new instance has migrated and listens after ${seconds(from)} s`)
      answers()
      for (let i = 0; i < LATENESSES; i++) {
        await query({ databaseUrl: url }, LATE)
        await service.progress(Math.ceil((2 * PROMISES) / LATENESSES))
      }
      t.diagnostic(`answers of both versions side by side: ${answers()}`)
      const errors = (service.programs[1]?.logged ?? []).filter(({ level }) => level === 'error')
      const events = new Map<unknown, number>()
      for (const { event, reason, err } of errors) {
        const text = `${event}: ${reason ?? (err as { message?: string })?.message ?? ''}`
        events.set(text, (events.get(text) ?? 0) + 1)
      }
      for (const [text, n] of events) t.diagnostic(`the old instance logged ${n} × ${text}`)
      await stop(service, 1)
      await service.start(1, BIN)
      await service.progress(PROMISES)
      await until('every sale is in the books', async () => {
        const rows = await query({ databaseUrl: url }, UNRECORDED)
        return rows.length === 0
      })
      assert.deepEqual(await service.close(), [])
    })

    test('the service is away for seconds while all instances are replaced at once, and nothing that was answered is lost or doubled', async (t) => {
      const { service } = await previousInstances(t, commit)
      await service.progress(PROMISES)
      const from = performance.now()
      await Promise.all([stop(service, 0), stop(service, 1)])
      await Promise.all([service.start(0, BIN), service.start(1, BIN)])
      t.diagnostic(`nobody answered for ${seconds(from)} s`)
      await service.progress(2 * PROMISES)
      assert.deepEqual(await service.close(), [])
    })
  })
}
