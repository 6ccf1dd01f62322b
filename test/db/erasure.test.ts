import assert from 'node:assert/strict'
import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite, type TestContext, test } from 'node:test'
import { insertInbox } from '../../src/catch/store.ts'
import type { CatchCapability } from '../../src/client/index.ts'
import { migrate } from '../../src/db/migrate.ts'
import { openSqlite } from '../../src/db/sqlite/sqlite.ts'
import { anInbox as buy } from '../support/catch.ts'
import { temporaryFolder } from '../support/folder.ts'
import { anInbox } from '../support/inboxes.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000

/**
 * Whether the text is anywhere in the raw files around the database. They are read against their order, since a log that
 * is emptied between two reads has passed its bytes on to the database.
 */
async function isOnDisk(file: string, text: string): Promise<boolean> {
  const folder = dirname(file)
  for (const name of (await readdir(folder)).toSorted().toReversed()) {
    if ((await readFile(join(folder, name))).includes(text)) return true
  }
  return false
}

type Shop = { server: TestServer; inbox: CatchCapability; purge(): void }

/** A server with an inbox, whose purge runs when the test says so. */
async function aServer(t: TestContext): Promise<Shop> {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  return { server, inbox: await buy(server), purge: () => t.mock.timers.tick(MINUTE) }
}

/** Sends the marker in every part of a request that is stored, the body of this length. */
async function send({ server, inbox }: Shop, marker: string, length = 100): Promise<void> {
  const response = await fetch(`${server.url}/c/${inbox.publicId}/${marker}?${marker}`, {
    method: 'POST',
    headers: { 'content-type': `text/${marker}`, 'x-marker': marker },
    body: marker
      .repeat(Math.ceil(length / marker.length))
      .slice(0, Math.max(length, marker.length)),
  })
  assert.equal(response.status, 204)
}

/** The row is gone, so that what is left of its bytes is nobody's any more. */
const eventCount = async ({ server }: Shop): Promise<number> => {
  const db = await openSqlite(server.file)
  const [row] = await db.read<{ n: number }>('select count(*) as n from catch_event')
  await db.close()
  return row?.n ?? -1
}

suite('bytes that were deleted are in no file', () => {
  test('no file has a byte of the deleted events where others of all sizes stay', async (t) => {
    const shop = await aServer(t)
    const marker = (i: number): string => `[marker ${String(i).padStart(3, '0')}]`.replace(' ', '-')
    const numbers = Array.from({ length: 90 }, (_, i) => i)
    const isKept = (i: number): boolean => i % 3 === 1
    for (const i of numbers) {
      const text = marker(i).slice(1, -1)
      await send(shop, text, [20, 150, 700, 3_000, 9_000, 40_000][i % 6])
    }
    const owner = shop.server.mayfly.catch(shop.inbox)
    const events = await Array.fromAsync(owner.events({ limit: 50 }))
    // Neighbours go in an order of their own, so that pages are joined and cells move.
    const doomed = events.filter(({ sequence }) => !isKept(sequence - 1))
    for (const { id } of doomed.toSorted(
      (a, b) => ((a.sequence * 37) % 90) - ((b.sequence * 37) % 90),
    )) {
      await owner.deleteEvent(id)
    }
    await shop.server.stop()
    const found = await Promise.all(
      numbers.map((i) => isOnDisk(shop.server.file, marker(i).slice(1, -1))),
    )
    assert.deepEqual(found, numbers.map(isKept))
  })

  test('no file has a byte of a destroyed inbox, once it is purged', async (t) => {
    const shop = await aServer(t)
    for (let i = 0; i < 90; i++) await send(shop, 'marker-of-the-destroyed', 2_000)
    await shop.server.mayfly.catch(shop.inbox).destroy()
    shop.purge()
    await until('the inbox is purged', () => shop.server.logged.join('').includes('product.purged'))
    assert.equal(await eventCount(shop), 0)
    await shop.server.stop()
    assert.equal(await isOnDisk(shop.server.file, 'marker-of-the-destroyed'), false)
    assert.equal(await isOnDisk(shop.server.file, shop.inbox.ownerToken), false)
  })

  test('no file has a byte of an inbox that was destroyed while many others had just expired', async (t) => {
    const shop = await aServer(t)
    const others = 120
    const db = await openSqlite(shop.server.file)
    await db.write(
      unit(
        ...Array.from({ length: others }, (_, i) =>
          insertInbox(
            anInbox({
              publicId: `catch_${String(i).padStart(22, '0')}`,
              expiresAt: Date.now() - 1_000,
            }),
          ),
        ).flat(),
      ),
    )
    await db.close()
    const last = { ...shop, inbox: await buy(shop.server) }
    await send(last, 'marker-of-the-destroyed')
    await shop.server.mayfly.catch(last.inbox).destroy()
    shop.purge()
    await until('the events are purged', async () => (await eventCount(shop)) === 0)
    await shop.server.stop()
    assert.equal(await isOnDisk(shop.server.file, 'marker-of-the-destroyed'), false)
  })
})

suite('the write-ahead log', () => {
  test('the write-ahead log is emptied now and then while the store is open, and the bytes with it', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openSqlite(file, { truncateEveryMs: 20 })
    t.after(() => db.close())
    await migrate(db)
    await db.write(
      unit({
        text: 'insert into meta (name, value) values ($1, $2)',
        values: ['note', 'marker-in-the-log'],
      }),
    )
    assert.equal(await isOnDisk(file, 'marker-in-the-log'), true)
    await db.write(unit({ text: `delete from meta where name = 'note'`, values: [] }))
    await db.read('select * from meta')
    await until('the log is empty', async () => (await stat(`${file}-wal`)).size === 0)
    assert.equal(await isOnDisk(file, 'marker-in-the-log'), false)
    await db.write(unit({ text: `insert into meta (name, value) values ('a', 'b')`, values: [] }))
    assert.deepEqual(await db.read('select * from meta'), [{ name: 'a', value: 'b' }])
  })

  test('the write-ahead log is emptied once nobody reads it, although nothing was written since', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openSqlite(file, { truncateEveryMs: 20 })
    t.after(() => db.close())
    await migrate(db)
    await db.write(
      unit({ text: `insert into meta (name, value) values ('a', 'marker-before')`, values: [] }),
    )
    const reader = new DatabaseSync(file, { readOnly: true })
    t.after(() => reader.close())
    reader.exec('begin; select * from meta')
    // On another page, so that the first one can be copied beside it.
    await db.write(unit({ text: 'create table more (n integer)', values: [] }))
    // All that the reader lets be copied was copied, so the log was found in use.
    await until('the log is copied', async () => (await readFile(file)).includes('marker-before'))
    assert.notEqual((await stat(`${file}-wal`)).size, 0)
    reader.exec('commit')
    await until('the log is empty', async () => (await stat(`${file}-wal`)).size === 0)
  })

  test('the write-ahead log is emptied by closing the store', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openSqlite(file)
    await migrate(db)
    await db.close()
    assert.deepEqual(await readdir(dirname(file)), ['mayfly.db'])
  })
})
