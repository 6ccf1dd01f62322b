import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Db } from '../../src/db/db.ts'
import { createInTurn } from '../../src/db/leases.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { until } from '../support/until.ts'

suite('taking turns', () => {
  test('one of many who come at once does the work', async (t) => {
    const { turns, done } = await workers(t, 10)
    await Promise.all(turns.map((turn) => turn()))
    assert.equal(done.length, 1)
  })

  test('work is done again when its time has come, and not before', async (t) => {
    const { turns, done, advance } = await workers(t, 2)
    const all = async () => {
      for (const turn of turns) await turn()
    }
    await all()
    advance(26_000)
    await all()
    assert.equal(done.length, 1)
    advance(1_000)
    await all()
    assert.equal(done.length, 2)
  })

  test('work of another name is another turn', async (t) => {
    const { turns, done } = await workers(t, 2)
    await turns[0]?.('catch.purge')
    await turns[1]?.('pulse.purge')
    assert.deepEqual(done, ['catch.purge', 'pulse.purge'])
  })

  test('work that fails fails for its caller, and belongs to nobody else until its time', async (t) => {
    const { inTurns, turns, done, advance } = await workers(t, 2)
    const failing = async () => {
      throw new Error('the disk is full')
    }
    await assert.rejects(async () => inTurns[0]?.('work', 30_000, failing), /disk is full/)
    await turns[1]?.()
    assert.equal(done.length, 0)
    advance(30_000)
    await turns[1]?.()
    assert.equal(done.length, 1)
  })

  test('work that a dead instance had begun is taken up by another', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { inTurns, turns, done, advance } = await workers(t, 2)
    const dead = new Promise<void>(() => undefined)
    await new Promise<void>((begun) => {
      void inTurns[0]?.('work', 30_000, () => {
        begun()
        return dead
      })
    })
    advance(2_499)
    await turns[1]?.()
    assert.equal(done.length, 0)
    advance(1)
    await turns[1]?.()
    assert.equal(done.length, 1)
  })

  test('work that takes long stays with the instance that does it, and waits its time afterwards', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { db, inTurns, turns, done, advance } = await workers(t, 2)
    let end = () => {}
    const begun = new Promise<void>((resolve) => {
      void inTurns[0]?.('work', 30_000, () => {
        resolve()
        return new Promise<void>((ended) => {
          end = ended
        })
      })
    })
    await begun
    const heldUntil = async () =>
      Number((await db.read('select held_until from lease'))[0]?.held_until)
    for (let i = 0; i < 10; i++) {
      const before = await heldUntil()
      advance(2_000)
      t.mock.timers.tick(800)
      await until('it is renewed', async () => (await heldUntil()) > before)
      await turns[1]?.()
    }
    assert.equal(done.length, 0)
    end()
    await until('it has ended', async () => (await heldUntil()) === Date.UTC(2026, 0, 2) + 27_000)
    advance(8_000)
    await turns[1]?.()
    assert.equal(done.length, 1)
  })

  test('a lease is renewed no more once its work has ended, however it ended', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { db, inTurns, turns, at, advance } = await workers(t, 2)
    const written: string[] = []
    const inTurn = createInTurn(
      {
        ...db,
        write: (unit) => {
          written.push(unit.lockKey)
          return db.write(unit)
        },
      },
      at,
    )
    await inTurn('done', 30_000, async () => undefined)
    const failing = inTurn('failed', 30_000, () => Promise.reject(new Error('the disk is full')))
    await assert.rejects(failing, /disk is full/)
    const before = written.length
    advance(8_000)
    t.mock.timers.tick(8_000)
    await Promise.all([inTurns[0]?.('other', 1, async () => undefined), turns[1]?.()])
    assert.deepEqual(written.slice(before), [])
  })
})

test('a renewal that is still under way when the work ends does not shorten the pause', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { db, advance, at } = await workers(t, 0)
  const renewal = Promise.withResolvers<void>()
  const renewed = Promise.withResolvers<void>()
  let isRenewing = false
  const slow: Db = {
    ...db,
    async write(unit) {
      // The claim is 'claimed', and the renewal is the first that is not.
      if (!('claimed' in unit.statements) && !isRenewing) {
        isRenewing = true
        await renewal.promise
        return db.write(unit).finally(renewed.resolve)
      }
      return db.write(unit)
    },
  }
  const startedAt = at()
  const turn = createInTurn(slow, at)('work', 30_000, async () => {
    advance(800)
    // Nothing is waited for, so that the end of the turn comes while it is under way.
    t.mock.timers.tick(800)
  })
  await until('a renewal is under way', () => isRenewing)
  // Without waiting, the end of the turn would be written by now.
  for (let i = 0; i < 20; i++) await setImmediate()
  renewal.resolve()
  await Promise.all([turn, renewed.promise])
  const [lease] = await db.read('select held_until from lease')
  assert.equal(Number(lease?.held_until), startedAt + 27_000)
})

async function workers(t: TestContext, many: number) {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(() => db.close())
  let now = Date.UTC(2026, 0, 2)
  const done: string[] = []
  const inTurns = Array.from({ length: many }, () => createInTurn(db, () => now))
  return {
    db,
    at: () => now,
    inTurns,
    done,
    turns: inTurns.map(
      (inTurn) =>
        (name = 'work') =>
          inTurn(name, 30_000, async () => void done.push(name)),
    ),
    advance(ms: number) {
      now += ms
    },
  }
}
