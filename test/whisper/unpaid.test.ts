/** What waits to be paid is counted to the byte: for its own network, for the one around it, and in its part. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import { releaseUnpaid, reserveUnpaid, settleUnpaid } from '../../src/whisper/unpaid.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const KIB = 1024
const SMALL = 64 * KIB
/** 6 MiB for all bodies, of which an eighth is 768 KiB, and 2 MiB for small ones, of which it is 256 KiB. */
const IN_ALL = 8 * KIB * KIB
const EIGHTH = 768 * KIB
const [ONE, BESIDE, ELSEWHERE] = ['203.0.113', '203.0.7', '192.0.2']

test('bytes count in all, for their network, in their part, and for the network around theirs', async (t) => {
  const { reserve, counters, reservations } = await aRoom(t)
  await reserve('a', 10, ONE)
  assert.deepEqual(await counters(), { all: 10, [ONE]: 10, common: 10, 'common around 203.0': 10 })
  await reserve('b', 20, BESIDE)
  await reserve('c', 40, ELSEWHERE)
  await reserve('d', 80, ONE)
  assert.deepEqual(await counters(), {
    ...{ all: 150, [ONE]: 90, [BESIDE]: 20, [ELSEWHERE]: 40 },
    ...{ common: 150, 'common around 203.0': 110, 'common around 192.0': 40 },
  })
  const facts = await reservations()
  assert.deepEqual(
    facts.map((row) => Object.values(row).join(' ')),
    [
      `a ${ONE} 10 common 203.0`,
      `b ${BESIDE} 20 common 203.0`,
      `c ${ELSEWHERE} 40 common 192.0`,
      `d ${ONE} 80 common 203.0`,
    ],
  )
})

test('a network may have its limit to the byte, at once or in parts, whatever others have', async (t) => {
  const { reserve, refuses } = await aRoom(t, { perNetwork: 100 })
  await reserve('other', 100, BESIDE)
  await refuses('a', 101, ONE)
  await reserve('a', 60, ONE)
  await refuses('b', 41, ONE)
  await reserve('b', 40, ONE)
  await refuses('c', 1, ONE)
})

test('all together may have their limit to the byte, at once or in parts', async (t) => {
  // Where a quarter is for small bodies, the other parts are full before. Here they are not.
  const { reserve, refuses, run } = await aRoom(t, { inAll: 100 })
  const held = (bytes: number) =>
    run({ text: `update whisper_unpaid set byte_count = $1 where scope = 'all'`, values: [bytes] })
  await refuses('a', 101, ONE)
  await reserve('a', 1, ONE)
  await held(98)
  await refuses('b', 3, ELSEWHERE)
  await reserve('b', 2, ELSEWHERE)
})

test('what is refused counts nowhere', async (t) => {
  const { reserve, refuses, counters, reservations } = await aRoom(t, { perNetwork: 100 })
  await reserve('a', 60, ONE)
  const before = [await counters(), await reservations()]
  await refuses('b', 41, ONE)
  await refuses('c', IN_ALL, ELSEWHERE)
  assert.deepEqual([await counters(), await reservations()], before)
})

test('a network around others has an eighth of the common part, to the byte', async (t) => {
  const { reserve, refuses, counters } = await aRoom(t)
  await refuses('a', EIGHTH + 1, ONE)
  await reserve('a', EIGHTH - SMALL - 1, ONE)
  await refuses('b', SMALL + 2, BESIDE)
  await reserve('b', SMALL + 1, BESIDE)
  const { common, 'common around 203.0': around } = await counters()
  assert.deepEqual([common, around], [EIGHTH, EIGHTH])
})

test('what a network has by itself does not count against its own eighth of what others leave', async (t) => {
  const { reserve, refuses } = await aRoom(t)
  await reserve('other', EIGHTH, ELSEWHERE)
  // Of 5.25 MiB.
  const left = (6 * KIB * KIB - EIGHTH) / 8
  await reserve('a', 300 * KIB, ONE)
  await refuses('b', left - 300 * KIB + 1, ONE)
  await reserve('b', left - 300 * KIB, ONE)
  await refuses('c', SMALL + 1, BESIDE)
})

test('a body goes to the part for small ones if the common part has no room, up to 64 KiB', async (t) => {
  const { reserve, refuses, partOf } = await aRoom(t)
  await reserve('large', EIGHTH - SMALL + 1, ONE)
  await refuses('a', SMALL + 1, ONE)
  await reserve('a', SMALL, ONE)
  await reserve('b', SMALL - 1, ONE)
  assert.deepEqual(
    [await partOf('large'), await partOf('a'), await partOf('b')],
    ['common', 'small', 'common'],
  )
})

test('a network has 128 KiB of the part for small bodies, to the byte, and the one around it an eighth', async (t) => {
  const { reserve, refuses, counters } = await aRoom(t)
  await reserve('large', EIGHTH, ONE)
  await reserve('a', SMALL, ONE)
  await reserve('b', SMALL - 1, ONE)
  await refuses('c', 2, ONE)
  await reserve('c', 1, ONE)
  await refuses('d', 1, ONE)
  await reserve('e', SMALL, BESIDE)
  await reserve('f', SMALL - 1, BESIDE)
  await refuses('g', 2, '203.0.8')
  await reserve('g', 1, '203.0.8')
  await refuses('h', 1, '203.0.9')
  assert.deepEqual(await counters(), {
    ...{ all: EIGHTH + 4 * SMALL, [ONE]: EIGHTH + 2 * SMALL, [BESIDE]: 2 * SMALL - 1 },
    ...{ '203.0.8': 1, common: EIGHTH, 'common around 203.0': EIGHTH },
    ...{ small: 4 * SMALL, 'small around 203.0': 4 * SMALL },
    ...{ [`small ${ONE}`]: 2 * SMALL, [`small ${BESIDE}`]: 2 * SMALL - 1, 'small 203.0.8': 1 },
  })
  // Of the seven eighths that others have not got.
  await reserve('large elsewhere', (6 * KIB * KIB - EIGHTH) / 8, ELSEWHERE)
  const rest = (2 * KIB * KIB - 4 * SMALL) / 8
  await reserve('i', SMALL, ELSEWHERE)
  await reserve('j', SMALL, ELSEWHERE)
  await reserve('k', SMALL, '192.0.3')
  await refuses('l', rest - 3 * SMALL + 1, '192.0.3')
  await reserve('l', rest - 3 * SMALL, '192.0.3')
})

for (const [name, over] of [
  ['released', releaseUnpaid],
  ['paid', settleUnpaid],
] as const) {
  test(`the bytes of an order that is ${name} count no longer, and those of others do`, async (t) => {
    const { run, reserve, counters, reservations } = await aRoom(t)
    await reserve('large', EIGHTH - 10, ONE)
    await reserve('common', 10, ONE)
    await reserve('small', 20, ONE)
    await reserve('beside', 40, BESIDE)
    await reserve('elsewhere', 80, ELSEWHERE)
    await run(...over('common'))
    assert.deepEqual(await counters(), {
      ...{ all: EIGHTH + 130, [ONE]: EIGHTH + 10, [BESIDE]: 40, [ELSEWHERE]: 80 },
      ...{ common: EIGHTH + 70, 'common around 203.0': EIGHTH - 10, 'common around 192.0': 80 },
      ...{ small: 60, 'small around 203.0': 60, [`small ${ONE}`]: 20, [`small ${BESIDE}`]: 40 },
    })
    await run(...over('small'))
    assert.deepEqual(await counters(), {
      ...{ all: EIGHTH + 110, [ONE]: EIGHTH - 10, [BESIDE]: 40, [ELSEWHERE]: 80 },
      ...{ common: EIGHTH + 70, 'common around 203.0': EIGHTH - 10, 'common around 192.0': 80 },
      ...{ small: 40, 'small around 203.0': 40, [`small ${BESIDE}`]: 40 },
    })
    assert.deepEqual(
      (await reservations()).map(({ order_id }) => order_id),
      ['beside', 'elsewhere', 'large'],
    )
  })
}

test('an order without a reservation is released as nothing, and refused as paid', async (t) => {
  const { run, reserve, counters } = await aRoom(t)
  await reserve('a', 10, ONE)
  const before = await counters()
  await run(...releaseUnpaid('b'))
  await assert.rejects(run(...settleUnpaid('b')), UnitRefused)
  assert.deepEqual(await counters(), before)
  await run(...settleUnpaid('a'))
  await assert.rejects(run(...settleUnpaid('a')), UnitRefused)
})

test('a network whose bytes are all gone leaves no counter behind', async (t) => {
  const { run, reserve, counters } = await aRoom(t)
  await reserve('large', EIGHTH, ONE)
  await reserve('a', 10, ONE)
  const before = await counters()
  await reserve('b', 20, BESIDE)
  await reserve('c', 40, ELSEWHERE)
  await run(...releaseUnpaid('b'))
  await run(...settleUnpaid('c'))
  assert.deepEqual(await counters(), before)
  await run(...releaseUnpaid('large'))
  await run(...settleUnpaid('a'))
  assert.deepEqual(await counters(), { all: 0 })
})

async function aRoom(t: After, limits: { perNetwork?: number; inAll?: number } = {}) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  const room = { perNetwork: IN_ALL, inAll: IN_ALL, ...limits }
  const reserve = (orderId: string, bytes: number, clientNetwork: string) =>
    run(...reserveUnpaid({ orderId, clientNetwork, bytes }, room))
  return {
    ...{ run, reserve },
    refuses: (...of: Parameters<typeof reserve>) => assert.rejects(reserve(...of), UnitRefused),
    async counters() {
      const rows = await db.read('select scope, byte_count from whisper_unpaid')
      return Object.fromEntries(rows.map((row) => [row.scope, Number(row.byte_count)]))
    },
    reservations: () =>
      db.read(
        `select order_id, client_network, byte_count, part, wider_network from whisper_reservation
         order by order_id`,
      ),
    async partOf(orderId: string) {
      const [row] = await db.read(
        'select part from whisper_reservation where order_id = $1',
        orderId,
      )
      return row?.part
    },
  }
}
