import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { insertInbox } from '../../src/catch/store.ts'
import { openStore } from '../../src/db/open.ts'
import { temporaryFolder } from '../support/folder.ts'
import { anInbox } from '../support/inboxes.ts'
import { unit } from '../support/unit.ts'

/** A long run sets more: `FAULT_KILLS=200 npm run test:faults`. */
const KILLS = Number(process.env.FAULT_KILLS ?? 8)
/** Events stored between two kills, at most: several turns of sorting in. */
const EVENTS = 600
const WRITER = fileURLToPath(new URL('places-writer.ts', import.meta.url))
const INBOXES = 20

suite('a writer that is killed while it sorts events in', {
  timeout: 60_000 + KILLS * 20_000,
}, () => {
  test('every stored event is found once, and every row has one place', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const inboxes = await openStore({ kind: 'sqlite', file })
    for (let i = 0; i < INBOXES; i++) {
      const limits = { requestLimit: 1e6, storageLimitBytes: 1e9 }
      await inboxes.write(unit(...insertInbox(anInbox({ publicId: `inbox ${i}`, ...limits }))))
    }
    await inboxes.close()
    const stored = new Set<number>()
    const deleted = new Set<number>()
    for (let kill = 0; kill < KILLS; kill++) {
      await writeUntilKilled(1 + Math.floor(Math.random() * EVENTS))
      const db = await openStore({ kind: 'sqlite', file })
      const rows = await db.read<{ salt: number; n: number }>(
        'select salt, count(*) as n from catch_event group by salt',
      )
      const places = await db.read(MISPLACED)
      const miscounted = await db.read(MISCOUNTED)
      await db.close()
      const found = new Set(rows.map(({ salt }) => salt))
      assert.deepEqual(
        rows.filter(({ n }) => n !== 1),
        [],
      )
      assert.deepEqual(
        [...stored].filter((salt) => !found.has(salt) && !deleted.has(salt)),
        [],
      )
      assert.deepEqual([places, miscounted], [[], []])
    }
    t.diagnostic(`${KILLS} kills, ${stored.size} events, ${deleted.size} of them deleted`)

    async function writeUntilKilled(events: number): Promise<void> {
      const first = (stored.size + 1_000) * 100
      const writer = spawn(process.execPath, [WRITER, file, String(first), String(INBOXES)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let left = events
      for await (const line of createInterface({ input: writer.stdout })) {
        const [sign, salt] = line.split(' ')
        if (sign === '-') deleted.add(Number(salt))
        else stored.add(Number(salt))
        if (--left === 0) writer.kill('SIGKILL')
      }
      if (writer.exitCode === null && writer.signalCode === null) await once(writer, 'exit')
      assert.equal(writer.signalCode, 'SIGKILL')
    }
  })
})

const MISPLACED = `select e.id from catch_event e where 1 <> (
    select count(*) from catch_event_recent r where r.id = e.id) + (
    select count(*) from catch_event_place p
    where p.inbox = e.inbox and p.sequence = e.sequence and p.id = e.id)
  union all select id from catch_event_recent where id not in (select id from catch_event)
  union all select id from catch_event_place where id not in (select id from catch_event)`

const MISCOUNTED = `select number from catch_inbox_use i where stored_bytes <> (
    select coalesce(sum(kept_bytes), 0) from catch_event e where e.inbox = i.number)`
