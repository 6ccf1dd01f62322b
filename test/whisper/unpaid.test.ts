/** What waits to be paid is counted to the byte: for its own network, for the one around it, and in its part. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attempt, UnitRefused } from '../../src/db/db.ts'
import { releaseUnpaid, reserveUnpaid, settleUnpaid } from '../../src/whisper/unpaid.ts'
import type { After } from '../support/folder.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const KIB = 1024
const MIB = 1024 * KIB
const SMALL = 64 * KIB
/** 6 MiB for all bodies, of which an eighth is 768 KiB, and 2 MiB for small ones, of which it is 256 KiB. */
const IN_ALL = 8 * KIB * KIB
const EIGHTH = 768 * KIB
const [ONE, BESIDE, ELSEWHERE] = ['203.0.113', '203.0.7', '192.0.2']

test('bytes count in their part, for their network and for the one around it', async (t) => {
  const { reserve, parts, reservations } = await aRoom(t)
  for (const [name, bytes, network] of [
    ['a', 10, ONE],
    ['b', 20, BESIDE],
    ['c', 40, ELSEWHERE],
    ['d', 80, ONE],
  ] as const) {
    await reserve(name, bytes, network)
  }
  assert.deepEqual(await parts(), { common: 150, small: 0 })
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

test('what is refused counts nowhere', async (t) => {
  const { reserve, refuses, parts, reservations } = await aRoom(t, { perNetwork: 100 })
  await reserve('a', 60, ONE)
  const before = [await parts(), await reservations()]
  await refuses('b', 41, ONE)
  await refuses('c', IN_ALL, ELSEWHERE)
  assert.deepEqual([await parts(), await reservations()], before)
})

test('a network around others has an eighth of the common part, to the byte', async (t) => {
  const { reserve, refuses, parts } = await aRoom(t)
  await refuses('a', EIGHTH + 1, ONE)
  await reserve('a', EIGHTH - SMALL - 1, ONE)
  await refuses('b', SMALL + 2, BESIDE)
  await reserve('b', SMALL + 1, BESIDE)
  assert.deepEqual(await parts(), { common: EIGHTH, small: 0 })
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
  const { reserve, refuses, parts } = await aRoom(t)
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
  assert.deepEqual(await parts(), { common: EIGHTH, small: 4 * SMALL })
  // Of the seven eighths that others have not got.
  await reserve('large elsewhere', (6 * KIB * KIB - EIGHTH) / 8, ELSEWHERE)
  const rest = (2 * KIB * KIB - 4 * SMALL) / 8
  await reserve('i', SMALL, ELSEWHERE)
  await reserve('j', SMALL, ELSEWHERE)
  await reserve('k', SMALL, '192.0.3')
  await refuses('l', rest - 3 * SMALL + 1, '192.0.3')
  await reserve('l', rest - 3 * SMALL, '192.0.3')
})

test('a small body of a newcomer has room after 100 networks have taken all they can', async (t) => {
  const { run, reserve, refuses, parts } = await aRoom(t, { inAll: 64 * MIB })
  let count = 0
  /** Reserves as much as this network gets: large bodies, then smaller ones. */
  async function takeAll(network: string): Promise<number> {
    let taken = 0
    for (const bytes of [4 * MIB, MIB / 2, SMALL]) {
      while ('rows' in (await attempt(reserve(`order ${count++}`, bytes, network)))) taken += bytes
    }
    return taken
  }
  const taken: number[] = []
  for (let i = 0; i < 100; i++) taken.push(await takeAll(`203.${i}.113`))
  // An eighth of the common part, and 128 KiB of the other.
  assert.deepEqual([taken[0], taken[99]], [6 * MIB + 2 * SMALL, 2 * SMALL])
  await refuses('a', SMALL + 1, ELSEWHERE)
  await reserve('a', SMALL, ELSEWHERE)
  await run(...settleUnpaid('a'))
  // None of the others has lost a byte.
  const { common = 0, small } = await parts()
  assert.equal(small, 100 * 2 * SMALL)
  assert.equal(
    common + small,
    taken.reduce((total, bytes) => total + bytes, 0),
  )
})

for (const [name, over] of [
  ['released', releaseUnpaid],
  ['paid', settleUnpaid],
] as const) {
  test(`the bytes of an order that is ${name} count no longer, and those of others do`, async (t) => {
    const { run, reserve, parts, reservations } = await aRoom(t)
    await reserve('large', EIGHTH - 10, ONE)
    await reserve('common', 10, ONE)
    await reserve('small', 20, ONE)
    await reserve('beside', 40, BESIDE)
    await reserve('elsewhere', 80, ELSEWHERE)
    await run(...over('common'))
    assert.deepEqual(await parts(), { common: EIGHTH + 70, small: 60 })
    await run(...over('small'))
    assert.deepEqual(await parts(), { common: EIGHTH + 70, small: 40 })
    assert.deepEqual(
      (await reservations()).map(({ order_id }) => order_id),
      ['beside', 'elsewhere', 'large'],
    )
  })
}

test('an order without a reservation is released as nothing, and refused as paid', async (t) => {
  const { run, reserve, parts } = await aRoom(t)
  await reserve('a', 10, ONE)
  const before = await parts()
  await run(...releaseUnpaid('b'))
  await assert.rejects(run(...settleUnpaid('b')), UnitRefused)
  assert.deepEqual(await parts(), before)
  await run(...settleUnpaid('a'))
  await assert.rejects(run(...settleUnpaid('a')), UnitRefused)
})

async function aRoom(t: After, limits: { perNetwork?: number; inAll?: number } = {}) {
  const db = await aDatabase(t)
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  const room = { perNetwork: IN_ALL, inAll: IN_ALL, ...limits }
  const reserve = (orderId: string, bytes: number, clientNetwork: string) =>
    run(...reserveUnpaid({ orderId, clientNetwork, bytes }, room))
  return {
    run,
    reserve,
    refuses: (...of: Parameters<typeof reserve>) => assert.rejects(reserve(...of), UnitRefused),
    async parts() {
      const rows = await db.read('select part, byte_count from whisper_unpaid')
      return Object.fromEntries(rows.map((row) => [row.part, Number(row.byte_count)]))
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
