/** A store that meets another node than before. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { Db } from '../../src/db/db.ts'
import { CURSORS, storedCursor } from '../../src/lightning/open.ts'
import { noteNode as note } from '../../src/service/store-identity.ts'
import { startServer } from '../support/server.ts'
import { aDatabaseUrl, openDatabase, query } from '../support/store.ts'

const [OLD, NEW] = ['02'.padEnd(66, 'a'), '03'.padEnd(66, 'b')] as const

async function aStore(t: TestContext) {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(() => db.close())
  return db
}

const noteNode = (db: Db, nodeId: string) => note(db, nodeId, Object.values(CURSORS))

suite('a store', () => {
  test('a store remembers its node, and says which one another has taken the place of', async (t) => {
    const db = await aStore(t)
    assert.equal(await noteNode(db, OLD), null)
    assert.equal(await noteNode(db, OLD), null)
    assert.equal(await noteNode(db, NEW), OLD)
    assert.equal(await noteNode(db, NEW), null)
    assert.equal(await noteNode(db, OLD), NEW)
  })

  test('a store tells one of those who notice another node at once', async (t) => {
    const db = await aStore(t)
    await noteNode(db, OLD)
    const told = await Promise.all(Array.from({ length: 10 }, () => noteNode(db, NEW)))
    assert.deepEqual(
      told.filter((previous) => previous !== null),
      [OLD],
    )
  })

  for (const [backend, name] of Object.entries(CURSORS)) {
    test(`a store follows the settlements of a new ${backend} from the beginning`, async (t) => {
      const db = await aStore(t)
      const cursor = storedCursor(db, name)
      // As it was before nodes were noted.
      await cursor.write(4_711)
      await noteNode(db, OLD)
      assert.equal(await cursor.read(), 4_711)
      await noteNode(db, NEW)
      assert.equal(await cursor.read(), 0)
      await cursor.write(2)
      await noteNode(db, NEW)
      assert.equal(await cursor.read(), 2)
    })
  }
})

test('how far the settlements were followed never goes back, whoever writes last', async (t) => {
  const cursor = storedCursor(await aStore(t), CURSORS.lnd)
  for (const index of [9, 10, 3]) await cursor.write(index)
  assert.equal(await cursor.read(), 10)
})

test('another node in the place of the known one is logged at the start, is followed from its beginning, and stops nothing', async (t) => {
  const server = await startServer(t)
  const changes = () =>
    server.logged
      .map((line) => JSON.parse(line))
      .filter(({ event }) => event === 'lightning.node_changed')
  await server.restart()
  assert.deepEqual(changes(), [])
  const [mine] = await query(server, `select value from meta where name = 'lightning_node'`)
  await query(server, `update meta set value = $1 where name = 'lightning_node'`, OLD)
  const cursors = Object.values(CURSORS).map((name) => `'${name}'`)
  await query(
    server,
    `insert into meta (name, value) values ${cursors.map((name) => `(${name}, '7')`)}`,
  )
  await server.restart()
  assert.deepEqual(await query(server, `select name from meta where name in (${cursors})`), [])
  assert.deepEqual(
    changes().map(({ previousNodeId, nodeId }) => [previousNodeId, nodeId]),
    [[OLD, mine?.value]],
  )
  assert.equal((await fetch(`${server.url}/ready`)).status, 200)
  await server.restart()
  assert.equal(changes().length, 1)
})
