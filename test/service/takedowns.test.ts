/** A takedown changes one capability and its own record. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CATCH } from '../../src/catch/product.ts'
import { insertInbox } from '../../src/catch/store.ts'
import type { Db } from '../../src/db/db.ts'
import type { Takedown } from '../../src/http/product.ts'
import { createPulseStore } from '../../src/pulse/store.ts'
import { PULSE_TAKEDOWN, suspensionsOf } from '../../src/pulse/takedown.ts'
import { listSuspensions, resume, suspend } from '../../src/service/takedowns.ts'
import { insertWhisper, reserveCiphertext } from '../../src/whisper/store.ts'
import { WHISPER_TAKEDOWN } from '../../src/whisper/takedown.ts'
import type { After } from '../support/folder.ts'
import { anInbox } from '../support/inboxes.ts'
import { newMonitor } from '../support/pulse-monitor.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const T = 1_800_000_000_000
const END = T + 10_000
const NAMES = ['a', 'b', 'c']
const TABLES = { catch: 'catch_inbox', whisper: 'whisper', pulse: 'pulse_monitor' }
const STATES = { ...TABLES, catch: 'catch_inbox join catch_inbox_use using (number)' }
type Product = keyof typeof TABLES
const TAKEDOWNS: Record<Product, Takedown> = {
  catch: CATCH.takedown,
  whisper: WHISPER_TAKEDOWN,
  pulse: PULSE_TAKEDOWN,
}

for (const product of Object.keys(TABLES) as Product[]) {
  test(`one capability of ${product} is suspended, once, and resumed, once`, async (t) => {
    assert.equal(TAKEDOWNS[product].kind, product)
    const { suspended, suspends, resumes } = await aStore(t, product)
    assert.equal(await suspends('b'), true)
    assert.deepEqual(await suspended(), { a: null, b: T, c: null })
    assert.equal(await suspends('b', T + 1), false)
    assert.equal(await suspends('none'), false)
    assert.equal(await suspends('c', T + 2), true)
    assert.equal(await resumes('a'), 'unknown')
    assert.equal(await resumes('none'), 'unknown')
    assert.deepEqual(await suspended(), { a: null, b: T, c: T + 2 })
    assert.equal(await resumes('b'), 'resumed')
    assert.deepEqual(await suspended(), { a: null, b: null, c: T + 2 })
    assert.equal(await resumes('b'), 'unknown')
    assert.equal(await suspends('b', T + 3), true)
    assert.deepEqual(await suspended(), { a: null, b: T + 3, c: T + 2 })
  })

  test(`a capability of ${product} is suspended until its end, to the millisecond`, async (t) => {
    const { suspended, suspends } = await aStore(t, product)
    assert.equal(await suspends('b', END), false)
    assert.equal(await suspends('b', END - 1), true)
    assert.deepEqual(await suspended(), { a: null, b: END - 1, c: null })
  })

  test(`a capability of ${product} that is gone is only taken off the list, once`, async (t) => {
    const { db, suspends, resumes, listed } = await aStore(t, product)
    for (const name of ['b', 'c']) await suspends(name)
    const text = `delete from ${TABLES[product]} where public_id = 'b'`
    await db.write(unit({ text, values: [] }))
    assert.equal(await resumes('b'), 'over')
    assert.equal(await resumes('b'), 'unknown')
    assert.deepEqual(await listed(), ['c'])
  })
}

test('a monitor that is suspended is looked at no more, and at once when it is resumed', async (t) => {
  const { db, suspends, resumes } = await aStore(t, 'pulse')
  const looks = async () => {
    const rows = await db.read('select public_id, check_at, revision from pulse_monitor order by 1')
    return rows.map(({ check_at, revision }) => [check_at, revision])
  }
  await suspends('b', T + 1)
  assert.deepEqual(await looks(), [
    [T, 0],
    [null, 1],
    [T, 0],
  ])
  await resumes('b', T + 5)
  assert.deepEqual(await looks(), [
    [T, 0],
    [T + 5, 2],
    [T, 0],
  ])
})

test('a monitor keeps its newest twenty suspensions', async (t) => {
  const { db, suspends, resumes } = await aStore(t, 'pulse')
  for (let i = 0; i < 21; i++) {
    await suspends('b', T + 10 * i)
    await resumes('b', T + 10 * i + 5)
  }
  assert.deepEqual(
    await suspensions(db),
    Array.from({ length: 20 }, (_, i) => [T + 10 * (i + 1), T + 10 * (i + 1) + 5]),
  )
})

test('a monitor that is resumed by a clock that is behind was suspended for no time', async (t) => {
  const { db, suspends, resumes } = await aStore(t, 'pulse')
  await suspends('b', T + 9)
  await resumes('b', T + 3)
  assert.deepEqual(await suspensions(db), [[T + 9, T + 9]])
})

test('the list has what is suspended, the latest first, with its own reason, and on request what was resumed', async (t) => {
  const { db, suspends, resumes } = await aStore(t, 'catch')
  await suspends('b', T + 2, 'spam')
  await suspends('c', T + 3, 'phishing')
  await suspends('a', T + 1)
  await resumes('c', T + 4)
  const record = { product: 'catch', resumedAt: null }
  const [a, b, c] = [
    { publicId: 'a', ...record, reason: '', suspendedAt: T + 1 },
    { publicId: 'b', ...record, reason: 'spam', suspendedAt: T + 2 },
    { publicId: 'c', ...record, reason: 'phishing', suspendedAt: T + 3, resumedAt: T + 4 },
  ]
  assert.deepEqual(await listSuspensions(db, { isAll: false }), [b, a])
  assert.deepEqual(await listSuspensions(db, { isAll: true }), [c, b, a])
  await suspends('c', T + 5, 'again')
  const again = { publicId: 'c', ...record, reason: 'again', suspendedAt: T + 5 }
  assert.deepEqual(await listSuspensions(db, { isAll: true }), [again, b, a])
})

test('a suspension that is refused is on no list', async (t) => {
  const { listed, suspends, resumes } = await aStore(t, 'catch')
  await suspends('none')
  await resumes('a')
  await suspends('b', END)
  assert.deepEqual(await listed(), [])
})

/** Those of the monitor b, as its deadlines see them. */
async function suspensions(db: Db): Promise<[beganAt: number, endedAt: number][]> {
  const monitor = await createPulseStore(db).monitor('b')
  assert.ok(monitor)
  return suspensionsOf(monitor).map(({ beganAt, endedAt }) => [beganAt, endedAt])
}

/** Three capabilities of a product, of which the first is not the one that is meant. */
async function aStore(t: After, product: Product) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  for (const name of NAMES) await sell(db, product, name)
  const target = (publicId: string) => ({ publicId, product, takedown: TAKEDOWNS[product] })
  return {
    db,
    suspends: (publicId: string, now = T, reason = '') =>
      suspend(db, target(publicId), { reason, now }),
    resumes: (publicId: string, now = T + 1) => resume(db, target(publicId), now),
    async suspended() {
      const rows = await db.read(
        `select public_id, suspended_at from ${STATES[product]} order by public_id`,
      )
      return Object.fromEntries(rows.map((row) => [row.public_id, row.suspended_at]))
    },
    listed: async () =>
      (await listSuspensions(db, { isAll: false })).map(({ publicId }) => publicId),
  }
}

async function sell(db: Db, product: Product, publicId: string): Promise<void> {
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  const common = { publicId, createdAt: T, expiresAt: END }
  const one = new Uint8Array([1])
  if (product === 'catch') await run(...insertInbox(anInbox(common)))
  if (product === 'whisper') {
    const reserved = { orderId: publicId, clientNetwork: 'n', ciphertext: one }
    await run(...reserveCiphertext(reserved, { perNetwork: 100, inAll: 100 }))
    const whisper = {
      public_id: publicId,
      order_id: publicId,
      read_token_hash: one,
      reads_left: 3,
      reveal_at: null,
      expires_at: END,
      has_receipt: 0,
      has_switch: 0,
    }
    await run(...insertWhisper(whisper))
  }
  if (product === 'pulse') await run(newMonitor({ ...common, checkAt: T }))
}
