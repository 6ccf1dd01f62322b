/** What every engine of the store promises. Each one runs this suite on a store of its own. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import {
  attempt,
  type Db,
  type Row,
  type RowMap,
  type Statement,
  StoreError,
  UnitRefused,
  type UnmigratedDb,
  type Value,
  ValueRefused,
} from '../../src/db/db.ts'
import { FAILING, JOINED, NO_ROWS } from '../support/row-maps.ts'
import { unit, withDurability } from '../support/unit.ts'

/** An empty store, and the same store opened anew after `db` was closed. */
export type OpenStore = { db: UnmigratedDb; reopen(): Promise<Db> }

/** How the engine spells the two column types that the migrations use. */
export type ColumnTypes = { bytes: string; integer: string }

export function dbContract(
  name: string,
  open: (t: TestContext) => Promise<OpenStore>,
  types: ColumnTypes = { bytes: 'blob', integer: 'integer' },
): void {
  const LETTERS = [...'abcdefghijkl']

  async function opened(t: TestContext): Promise<OpenStore> {
    const store = await open(t)
    await store.db.tx(async (tx) => {
      await tx.run(
        `create table item (id text primary key, n ${types.integer}, bytes ${types.bytes})`,
      )
      await tx.run(`create table wide (${LETTERS.map((letter) => `${letter} text`).join(', ')})`)
      await tx.run(
        `create table counter (id text primary key, n ${types.integer}, most ${types.integer})`,
      )
      await tx.run('create table strict_item (id text not null)')
    })
    return store
  }

  const anItem = (id: string, n: number | null = 1): Statement => ({
    text: 'insert into item (id, n) values ($1, $2)',
    values: [id, n],
  })
  const aCounter = (most: number): Statement => ({
    text: `insert into counter (id, n, most) values ('c', 0, $1)`,
    values: [most],
  })
  const count = (): Statement => ({
    text: `update counter set n = n + 1 where id = 'c' and n < most returning n`,
    values: [],
    expect: 1,
  })
  /** A condition that never holds. */
  const refusal = (): Statement => ({
    text: `update counter set n = 0 where id = 'nobody'`,
    values: [],
    expect: 1,
  })
  /** Rows with their bytes as buffers, which are compared by what they hold. */
  const shown = (rows: Row[]) =>
    rows.map(({ bytes, ...row }) => ({ ...row, bytes: Buffer.from(bytes as Uint8Array) }))
  const ids = async (db: Db): Promise<unknown[]> =>
    (await db.read('select id from item order by id')).map((row) => row.id)
  const counted = async (db: Db): Promise<unknown> => (await db.read('select n from counter'))[0]?.n

  suite(`${name} as a store`, { timeout: 600_000 }, () => {
    test('a unit resolves to the rows that its statements returned, by their names', async (t) => {
      const { db } = await opened(t)
      const read = { text: 'select id, n from item order by id', values: [] }
      const answer = await db.write({
        lockKey: 'item',
        statements: {
          made: {
            text: 'insert into item (id, n) values ($1, 1), ($2, 2) returning id, n',
            values: ['a', 'b'],
          },
          changed: { text: 'update item set n = n + 10', values: [] },
          nothing: [],
          several: [anItem('c'), read, anItem('d'), read],
          read,
          gone: { text: `delete from item where id = 'nobody' returning id`, values: [] },
        },
      })
      const [a, b] = [
        { id: 'a', n: 11 },
        { id: 'b', n: 12 },
      ]
      const [c, d] = [
        { id: 'c', n: 1 },
        { id: 'd', n: 1 },
      ]
      assert.deepEqual(answer, {
        made: [
          { id: 'a', n: 1 },
          { id: 'b', n: 2 },
        ],
        changed: [],
        nothing: [],
        several: [a, b, c, a, b, c, d],
        read: [a, b, c, d],
        gone: [],
      })
    })

    test('an empty unit happens, and returns nothing', async (t) => {
      const { db } = await opened(t)
      assert.deepEqual(await db.write({ lockKey: 'item', statements: {} }), {})
      assert.deepEqual(await db.write(unit()), { all: [] })
    })

    test('expect counts changed rows without returning, and returned rows with it', async (t) => {
      const { db } = await opened(t)
      await db.write(unit(anItem('a'), anItem('b'), anItem('c')))
      const three = await attempt(
        db.write(
          unit(
            { text: 'update item set n = 2', values: [], expect: 3 },
            { text: 'update item set n = 3 returning id', values: [], expect: 3 },
            { text: 'select id from item', values: [], expect: 3 },
            { text: `delete from item where id = 'nobody'`, values: [], expect: 0 },
          ),
        ),
      )
      assert.ok('rows' in three)
      const two = await attempt(
        db.write(unit({ text: 'update item set n = 9', values: [], expect: 2 })),
      )
      assert.deepEqual(two, { refused: 'all' })
      assert.deepEqual(await db.read('select distinct n from item'), [{ n: 3 }])
    })

    test('$n binds by position, however often and in whatever order it is named', async (t) => {
      const { db } = await opened(t)
      const { all: rows } = await db.write(
        unit({
          text: `insert into wide (a, b, c, d, e, f, g, h, i, j, k, l)
            values ($12, $11, $10, $9, $8, $7, $6, $5, $4, $3, $2, $1) returning *`,
          values: LETTERS,
        }),
      )
      const reversed = LETTERS.toReversed()
      assert.deepEqual(rows, [
        Object.fromEntries(LETTERS.map((letter, i) => [letter, reversed[i] ?? ''])),
      ])
      assert.deepEqual(
        await db.read('select a, b from wide where a = $2 and b = $1 and a = $2', 'k', 'l'),
        [{ a: 'l', b: 'k' }],
      )
    })

    test('a statement used again keeps nothing of the values before', async (t) => {
      const { db } = await opened(t)
      await db.write(unit(anItem('a', 1)))
      await db.write(unit(anItem('b', null)))
      assert.deepEqual(await db.read('select id, n from item order by id'), [
        { id: 'a', n: 1 },
        { id: 'b', n: null },
      ])
    })

    test('bytes, null, text and integers up to 2^53 - 1 come back as they went in', async (t) => {
      const { db } = await opened(t)
      const all = Uint8Array.from({ length: 256 }, (_, byte) => byte)
      const rows: [string, number | null, Uint8Array | null][] = [
        ['null', null, null],
        ['empty', 0, new Uint8Array()],
        ['most', Number.MAX_SAFE_INTEGER, all],
        ['naïve ✓ 🪰 \n"\'', Number.MIN_SAFE_INTEGER, all.subarray(7, 9)],
      ]
      const text = 'insert into item (id, n, bytes) values ($1, $2, $3)'
      await db.write(unit(...rows.map((values) => ({ text, values }))))
      const read = await db.read('select id, n, bytes from item')
      assert.deepEqual(
        read.map(({ id, n, bytes }) => [
          id,
          n,
          bytes instanceof Uint8Array ? new Uint8Array(bytes) : bytes,
        ]),
        rows.map(([id, n, bytes]) => [id, n, bytes && new Uint8Array(bytes)]),
      )
    })

    test('an integer beyond 2^53 - 1 is an error, never another number', async (t) => {
      const { db } = await opened(t)
      await db.write(unit(anItem('a', Number.MAX_SAFE_INTEGER)))
      await assert.rejects(db.read('select n + 2 as n from item'), StoreError)
      await assert.rejects(
        db.write(unit({ text: 'update item set n = n + 2 returning n', values: [] })),
        StoreError,
      )
      assert.deepEqual(await db.read('select n from item'), [{ n: Number.MAX_SAFE_INTEGER }])
    })

    test('a value that is refused each time is told from a store that is broken', async (t) => {
      const { db } = await opened(t)
      await db.write(unit(anItem('a')))
      const missing = { text: 'insert into strict_item (id) values ($1)', values: [null] }
      for (const refused of [[anItem('a')], [anItem('b'), anItem('a')], [anItem('c'), missing]]) {
        await assert.rejects(db.write(unit(...refused)), ValueRefused)
      }
      const elsewhere = { text: 'insert into no_such_table values ($1)', values: ['a'] }
      await assert.rejects(
        db.write(unit(anItem('d'), elsewhere)),
        (error) => error instanceof StoreError && !(error instanceof ValueRefused),
      )
      assert.deepEqual(await ids(db), ['a'])
    })

    test('a refused unit names the statement that refused it, and nothing of it happened', async (t) => {
      const { db } = await opened(t)
      const parts = {
        first: anItem('a'),
        pair: [anItem('b'), anItem('c')],
        none: [],
        last: anItem('d'),
      }
      const refused = [
        { first: refusal() },
        { pair: [refusal(), anItem('b')] },
        { pair: [anItem('b'), refusal()] },
        { last: refusal() },
      ]
      for (const part of refused) {
        const statements = { ...parts, ...part }
        const [name] = Object.keys(part)
        await assert.rejects(
          db.write({ lockKey: 'item', statements }),
          (error) => error instanceof UnitRefused && error.statement === name,
        )
        assert.deepEqual(await attempt(db.write({ lockKey: 'item', statements })), {
          refused: name,
        })
      }
      assert.deepEqual(await ids(db), [])
    })

    test('a condition that is not met comes before what fails behind it', async (t) => {
      const { db } = await opened(t)
      await db.write(unit(anItem('a')))
      const outcomes = await Promise.all(
        ['b', 'c'].map((id) => attempt(db.write(unit(anItem(id), refusal(), anItem('a'))))),
      )
      assert.deepEqual(outcomes, [{ refused: 'all' }, { refused: 'all' }])
      assert.deepEqual(await ids(db), ['a'])
    })

    test('a refused unit undoes no other of the units that arrive with it', async (t) => {
      const { db } = await opened(t)
      const numbers = Array.from({ length: 50 }, (_, i) => i)
      const name = (i: number): string => `item ${String(i).padStart(2, '0')}`
      /** Also the first of all, and one that changes nothing before. */
      const isRefused = (i: number): boolean => i % 7 === 0
      const unitOf = (i: number) => {
        if (!isRefused(i)) return unit(anItem(name(i)))
        return i % 2 === 0 ? unit(refusal(), anItem(name(i))) : unit(anItem(name(i)), refusal())
      }
      const outcomes = await Promise.all(numbers.map((i) => attempt(db.write(unitOf(i)))))
      assert.deepEqual(
        outcomes,
        numbers.map((i) => (isRefused(i) ? { refused: 'all' } : { rows: { all: [] } })),
      )
      assert.deepEqual(await ids(db), numbers.filter((i) => !isRefused(i)).map(name))
    })

    test('a unit that breaks a constraint fails alone among the units that arrive with it', async (t) => {
      const { db } = await opened(t)
      const outcomes = await Promise.allSettled([
        db.write(unit(anItem('a'))),
        db.write(unit(anItem('b'), anItem('a'))),
        db.write(unit({ text: 'insert into no_such_table values (1)', values: [] })),
        db.write(unit(anItem('c'))),
      ])
      assert.deepEqual(
        outcomes.map((outcome) =>
          outcome.status === 'fulfilled' ? 'done' : outcome.reason instanceof StoreError,
        ),
        ['done', true, true, 'done'],
      )
      assert.deepEqual(await ids(db), ['a', 'c'])
    })

    test('units take their turn: a later unit sees the earlier ones', async (t) => {
      const { db } = await opened(t)
      const results = await Promise.all([
        db.write(unit(aCounter(99))),
        ...Array.from({ length: 20 }, () => db.write(unit(count()))),
      ])
      assert.deepEqual(
        results.slice(1).map(({ all: [row] }) => row?.n),
        Array.from({ length: 20 }, (_, i) => i + 1),
      )
    })

    test('200 units at once against a counter with a limit take exactly the limit', async (t) => {
      const { db } = await opened(t)
      await db.write(unit(aCounter(120)))
      const outcomes = await Promise.all(
        Array.from({ length: 200 }, () => attempt(db.write(unit(count())))),
      )
      const refused = outcomes.filter((outcome) => 'refused' in outcome)
      assert.equal(refused.length, 80)
      assert.equal(await counted(db), 120)
    })

    test('a read sees every write that was acknowledged', async (t) => {
      const { db } = await opened(t)
      await db.write(unit(aCounter(1_000)))
      await Promise.all(
        Array.from({ length: 50 }, async () => {
          const { all } = await db.write(unit(count()))
          const mine = Number(all[0]?.n)
          const seen = Number(await counted(db))
          assert.ok(seen >= mine, `wrote ${mine} and read ${seen}`)
        }),
      )
    })

    test('a deferred unit is seen at once, and refused like any other', async (t) => {
      const { db, reopen } = await opened(t)
      const deferred = (...statements: Statement[]) =>
        withDurability('deferred', unit(...statements))
      await db.write(deferred(anItem('soon')))
      assert.deepEqual(await ids(db), ['soon'])
      const refused = await attempt(db.write(deferred(anItem('no'), refusal())))
      assert.deepEqual(refused, { refused: 'all' })
      await Promise.all([db.write(deferred(anItem('a'))), db.write(unit(anItem('b')))])
      await db.write(deferred(anItem('last')))
      await db.close()
      assert.deepEqual(await ids(await reopen()), ['a', 'b', 'last', 'soon'])
    })

    test('a read that fails is an error of its own', async (t) => {
      const { db } = await opened(t)
      const [bad, good] = await Promise.allSettled([
        db.read('select * from no_such_table'),
        db.read('select id from item'),
      ])
      assert.ok(bad.status === 'rejected' && bad.reason instanceof StoreError)
      assert.deepEqual(good, { status: 'fulfilled', value: [] })
    })

    test("a scan resolves to the rows that the map makes of the query's, or to its own", async (t) => {
      const { db } = await opened(t)
      const large = Buffer.alloc(40_000, 7)
      const insert = 'insert into item (id, n, bytes) values ($1, 1, $2)'
      await db.write(
        unit(
          { text: insert, values: ['a', large] },
          { text: insert, values: ['b', Buffer.from('end')] },
        ),
      )
      const query = { text: 'select id, bytes from item order by id', values: [] }
      const ask = (through: RowMap, ...parameters: Value[]) =>
        db.scan({ ...query, through, parameters })
      const [once, twice, nothing, ...plain] = await Promise.all([
        ask(JOINED, 1),
        ask(JOINED, 2),
        ask(NO_ROWS),
        db.scan(query),
        db.read(query.text),
      ])
      const bytes = Buffer.concat([large, Buffer.from('end')])
      assert.deepEqual(shown(once), [{ ids: 'a b', bytes }])
      assert.deepEqual(shown(twice), [{ ids: 'a b', bytes: Buffer.concat([bytes, bytes]) }])
      assert.deepEqual(nothing, [])
      const rows = [
        { id: 'a', bytes: large },
        { id: 'b', bytes: Buffer.from('end') },
      ]
      assert.deepEqual(plain.map(shown), [rows, rows])
    })

    test('a scan fails alone if its map or its query fails', async (t) => {
      const { db } = await opened(t)
      const text = 'select id, bytes from item'
      const ask = { text, values: [], through: FAILING, parameters: [] }
      const [map, query, good] = await Promise.allSettled([
        db.scan(ask),
        db.scan({ ...ask, text: 'select * from no_such_table' }),
        db.read(text),
      ])
      assert.match(String(map.status === 'rejected' && map.reason), /this map fails/)
      assert.ok(query.status === 'rejected' && query.reason instanceof StoreError)
      assert.deepEqual(good, { status: 'fulfilled', value: [] })
    })

    test('a read does not wait behind a transaction', async (t) => {
      const { db } = await opened(t)
      await db.write(unit(anItem('before')))
      const gate = Promise.withResolvers<void>()
      const inside = Promise.withResolvers<void>()
      const transaction = db.tx(async (tx) => {
        await tx.run(`insert into item (id) values ('inside')`)
        inside.resolve()
        await gate.promise
      })
      await inside.promise
      assert.deepEqual(await ids(db), ['before'])
      gate.resolve()
      await transaction
      assert.deepEqual(await ids(db), ['before', 'inside'])
    })

    test('a transaction resolves to what its work returned', async (t) => {
      const { db } = await opened(t)
      const seen = await db.tx(async (tx) => {
        await tx.run('insert into item (id, n) values ($1, $2)', 'a', 5)
        return tx.run('select id, n from item where n = $1', 5)
      })
      assert.deepEqual(seen, [{ id: 'a', n: 5 }])
      assert.deepEqual(await ids(db), ['a'])
    })

    test('a transaction whose work throws leaves nothing, and the store works on', async (t) => {
      const { db } = await opened(t)
      const reason = new Error('changed my mind')
      await assert.rejects(
        db.tx(async (tx) => {
          await tx.run(`insert into item (id) values ('a')`)
          throw reason
        }),
        reason,
      )
      await assert.rejects(
        db.tx(async (tx) => {
          await tx.run(`insert into item (id) values ('b')`)
          await tx.run('insert into no_such_table values (1)')
        }),
        StoreError,
      )
      await db.write(unit(anItem('c')))
      assert.deepEqual(await ids(db), ['c'])
    })

    test('close waits for what is under way, and what was acknowledged is kept', async (t) => {
      const { db, reopen } = await opened(t)
      await db.write(unit(aCounter(1_000)))
      const units = Array.from({ length: 100 }, () => db.write(unit(count())))
      const read = ids(db)
      await Promise.all([...units, read, db.close()])
      assert.equal(await counted(await reopen()), 100)
    })

    test('a closed store refuses work, rather than let it wait', async (t) => {
      const { db } = await opened(t)
      await db.close()
      await assert.rejects(db.write(unit(anItem('a'))), StoreError)
      await assert.rejects(db.read('select id from item'), StoreError)
      const mapped = { text: 'select id from item', values: [], through: NO_ROWS, parameters: [] }
      await assert.rejects(db.scan(mapped), StoreError)
      await assert.rejects(
        db.tx(() => Promise.resolve()),
        StoreError,
      )
    })
  })
}
