import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Statement, Value } from '../../../src/db/db.ts'
import { createDrain, createFeeder, createRingMemory } from '../../../src/db/sqlite/ring.ts'
import { openSqlite } from '../../../src/db/sqlite/sqlite.ts'
import { temporaryFolder } from '../../support/folder.ts'

const VALUES: Value[] = [
  ...[
    null,
    0,
    -0,
    1,
    -1,
    0.5,
    2 ** 28 - 1,
    2 ** 28,
    -(2 ** 31),
    Number.MAX_SAFE_INTEGER,
    Number.NaN,
  ],
  ...['', 'plain', 'Grüße, 世界 🦋', 'a\0b'],
  ...[new Uint8Array(), new Uint8Array([0, 255, 1]), Buffer.from('bytes')],
]

describe('the ring between the threads', () => {
  test('statements come out of the ring as they went in, whatever their values', () => {
    const { feeder, drain } = aRing()
    const units: Statement[][] = [
      [
        { text: 'insert $1', values: VALUES, expect: 1 },
        { text: 'select 1', values: [] },
      ],
      [],
      [{ text: 'insert $1', values: VALUES, expect: 0 }],
    ]
    assert.equal(feeder.put(units, true), 3)
    assert.deepEqual(plain(drain.take()), { units: plainUnits(units), isFlushed: true })
    drain.free()
    // The texts are known to both sides now.
    assert.equal(feeder.put(units, false), 3)
    assert.deepEqual(plain(drain.take()), { units: plainUnits(units), isFlushed: false })
  })

  test('units that do not fit into one block go into the next, in their order', () => {
    const { feeder, drain } = aRing()
    const units = Array.from({ length: 10 }, (_, i) => unitOf(i, 15_000))
    const first = feeder.put(units, true)
    assert.ok(first > 0 && first < units.length)
    const second = feeder.put(units.slice(first), true)
    assert.ok(second > 0)
    assert.deepEqual(
      [drain.take(), drain.take()].flatMap((batch) => numbersIn(batch)),
      Array.from({ length: first + second }, (_, i) => i),
    )
  })

  test('a full ring takes nothing until the thread has freed a block', () => {
    const { feeder, drain } = aRing()
    let put = 0
    while (feeder.put([unitOf(put, 10)], true) === 1) put++
    assert.ok(put > 1)
    assert.equal(feeder.hasRoom(), false)
    for (let i = 0; i < put; i++) assert.deepEqual(numbersIn(drain.take()), [i])
    assert.equal(drain.take(), null)
    assert.equal(feeder.hasRoom(), false, 'its bytes may still be in use')
    drain.free()
    assert.equal(feeder.put([unitOf(put, 10)], true), 1)
    assert.deepEqual(numbersIn(drain.take()), [put])
  })

  test('a unit that no block can hold is not taken, nor one with a value that has no cell', () => {
    const { feeder } = aRing()
    assert.equal(feeder.put([unitOf(1, 64 * 1024)], true), 0)
    assert.equal(feeder.put([[{ text: 'x', values: [true as unknown as Value] }]], true), 0)
    assert.equal(feeder.hasRoom(), true)
  })

  test('a thread that waits is woken once, and one that is at work never', () => {
    const { feeder, drain } = aRing()
    feeder.put([unitOf(1, 10)], true)
    assert.equal(feeder.mustWake(), true)
    assert.equal(feeder.mustWake(), false)
    assert.equal(drain.wait(), false, 'a unit has arrived')
    drain.take()
    drain.free()
    assert.equal(drain.wait(), true)
    assert.equal(feeder.mustWake(), true)
  })

  test('a batch that brings a new statement leaves nothing else in memory', () => {
    const { feeder, drain } = aRing()
    const statements = 200
    const before = heapUsed()
    for (let i = 0; i < statements; i++) {
      feeder.put([[{ text: `insert into line_${i}`, values: [`${i}`.padEnd(10_000)] }]], true)
      drain.take()
      drain.free()
    }
    assert.ok(heapUsed() - before < (statements * 10_000) / 2)
    assert.equal(drain.take(), null)
  })

  test('units of every size are committed in the order in which they were written', async (t) => {
    const db = await openSqlite(join(await temporaryFolder(t), 'mayfly.db'))
    await db.write(unit('create table line (at integer primary key, bytes blob)', []))
    const sizes = Array.from({ length: 300 }, (_, i) => (i % 7 === 0 ? 100_000 : i * 10))
    await Promise.all(
      sizes.map((size) =>
        db.write(unit('insert into line (bytes) values ($1)', [new Uint8Array(size)])),
      ),
    )
    const rows = await db.read<{ size: number }>(
      'select length(bytes) as size from line order by at',
    )
    assert.deepEqual(
      rows.map(({ size }) => size),
      sizes,
    )
    await db.close()
  })
})

function aRing() {
  const memory = createRingMemory()
  const drain = createDrain(memory)
  return { feeder: createFeeder(memory), drain }
}

const unitOf = (number: number, bytes: number): Statement[] => [
  { text: 'insert $1, $2', values: [number, new Uint8Array(bytes)] },
]

const unit = (text: string, values: Value[]) => ({
  lockKey: 'line',
  statements: { line: { text, values } },
})

function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  setFlagsFromString('--no-expose-gc')
  return process.memoryUsage().heapUsed
}

type Taken = ReturnType<ReturnType<typeof createDrain>['take']>

function numbersIn(batch: Taken): unknown[] {
  assert.ok(batch !== null && batch !== 'message')
  return batch.units.map(([statement]) => statement?.values[0])
}

/** Bytes of any kind compare as the same list. */
function plain(batch: Taken): unknown {
  assert.ok(batch !== null && batch !== 'message')
  return { ...batch, units: plainUnits(batch.units) }
}

const plainUnits = (units: Statement[][]): unknown[] =>
  units.map((statements) =>
    statements.map(({ values, ...others }) => ({
      ...others,
      values: values.map((value) => (value instanceof Uint8Array ? [...value] : value)),
    })),
  )
