/** How fast the watcher goes, how it takes failures, and what it tidies up at which age. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { StoreError } from '../../src/db/db.ts'
import { events, nodeSays } from '../support/orders.ts'
import { aShop, DAY, HOUR, openReads, SECOND, type Shop } from '../support/shop.ts'
import { ownedTimers } from '../support/timers.ts'
import { unit } from '../support/unit.ts'
import { key, watching, watchingSilence } from '../support/watching.ts'

const KEEP_MS = 30 * DAY

const turn = () => new Promise((resolve) => setImmediate(resolve))

suite('the stream of the node', () => {
  /** Ticks through this time, and returns when in it each stream was opened. */
  async function streamsWithin(t: TestContext, ms: number, watch: (shop: Shop, n: number) => void) {
    ownedTimers(t)
    const shop = await aShop(t)
    const opened: number[] = []
    let elapsed = 0
    shop.node.replaced.watch = async () => {
      opened.push(elapsed)
      watch(shop, opened.length)
      throw new Error('the node restarts')
    }
    const { stop } = watching(shop)
    for (; elapsed < ms; elapsed += 500) {
      for (let i = 0; i < 5; i++) await turn()
      t.mock.timers.tick(500)
    }
    await stop()
    assert.equal(events(shop, 'lightning.stream_ended').length, opened.length)
    return opened.map((at) => at / SECOND)
  }

  test('a stream that breaks at once is opened after half a second, then ever more slowly, up to 30 seconds', async (t) => {
    const opened = await streamsWithin(t, 125 * SECOND, () => {})
    assert.deepEqual(opened, [0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5, 91.5, 121.5])
  })

  test('a stream that broke after more than 30 seconds is opened again after half a second', async (t) => {
    // The third lasts 30 seconds, and the fifth lasts longer.
    const lasting: Record<number, number> = { 3: 30 * SECOND, 5: 30 * SECOND + 1 }
    const opened = await streamsWithin(t, 12 * SECOND, (shop, n) =>
      shop.clock.advance(lasting[n] ?? 0),
    )
    assert.deepEqual(opened, [0, 0.5, 1.5, 3.5, 7.5, 8, 9, 11])
  })

  test('a stop waits until the stream has ended', async (t) => {
    const shop = await aShop(t)
    const stream = Promise.withResolvers<void>()
    shop.node.replaced.watch = () => stream.promise
    const ends: string[] = []
    const stopped = watching(shop)
      .stop()
      .then(() => ends.push('the stop'))
    for (let i = 0; i < 20; i++) await shop.db.write(unit())
    ends.push('the stream')
    stream.resolve()
    await stopped
    assert.deepEqual(ends, ['the stream', 'the stop'])
  })

  test('a hint that the store cannot follow is told to the log, and the next one is followed', async (t) => {
    const { noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    const tells = Promise.withResolvers<(paymentHash: string) => void>()
    shop.node.replaced.watch = (onSettled, signal) => {
      tells.resolve(onSettled)
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
    }
    const quote = await shop.quote()
    nodeSays(shop, 'open')
    watching(shop)
    const tell = await tells.promise
    // The pass at the start has seen it, and does not look again.
    await noSweep(() => shop.node.lookups.length === 1)
    delete shop.node.replaced.lookupInvoice
    await shop.pay(quote)
    const read = shop.db.read
    shop.db.read = (text, ...values) =>
      values[0] === quote.paymentHash
        ? Promise.reject(new StoreError('no thread'))
        : read(text, ...values)
    tell(quote.paymentHash)
    await noSweep(() => events(shop, 'order.hint_failed').length === 1)
    assert.match(String(events(shop, 'order.hint_failed')[0]?.reason), /no thread/)
    assert.equal(shop.levels.get('order.hint_failed'), 'error')
    shop.db.read = read
    tell(quote.paymentHash)
    await noSweep(async () => (await shop.order(quote))?.state === 'settled')
    assert.equal((await shop.order(quote))?.settled_by, 'stream')
  })
})

suite('the look-ups of the watcher', () => {
  test('eight orders at most are looked up at once', async (t) => {
    const { noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    for (let i = 0; i < 20; i++) await shop.quote(key(i))
    let underWay = 0
    let most = 0
    shop.node.replaced.lookupInvoice = async () => {
      most = Math.max(most, ++underWay)
      for (let i = 0; i < 5; i++) await turn()
      underWay--
      return { state: 'open' }
    }
    watchingSilence(shop)
    await noSweep(() => shop.node.lookups.length === 20)
    assert.equal(most, 8)
  })

  test('a pass over more orders than it reads at once looks each of them up once', async (t) => {
    const { noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    const quote = await shop.quote()
    const columns = Object.keys((await shop.order(quote)) ?? {}).filter(
      (name) => name !== 'order_id' && name !== 'payment_hash',
    )
    await shop.db.write(
      unit(
        ...Array.from({ length: 400 }, (_, i) => ({
          text: `insert into purchase_order (order_id, payment_hash, ${columns.join(', ')})
            select 'order_${i}', 'hash ${i}', ${columns.join(', ')} from purchase_order
            where order_id = $1`,
          values: [quote.orderId],
        })),
      ),
    )
    nodeSays(shop, 'open')
    const { stop } = watchingSilence(shop)
    await noSweep(() => shop.node.lookups.length >= 401)
    for (let i = 0; i < 20; i++) await shop.db.read('select 1 as one')
    await stop()
    assert.equal(shop.node.lookups.length, 401)
    assert.equal(new Set(shop.node.lookups).size, 401)
  })

  test('a pass goes on past eight orders that another instance looks up meanwhile', async (t) => {
    const { noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    for (let i = 0; i < 20; i++) await shop.quote(key(i))
    nodeSays(shop, 'open')
    const { write } = shop.db
    const text = 'update purchase_order set looked_up_at = $2 where order_id = $1'
    let claims = 0
    shop.db.write = async (asked) => {
      if (JSON.stringify(asked.statements).includes('set looked_up_at') && claims++ < 8)
        await write(unit({ text, values: [asked.lockKey, shop.clock.now()] }))
      return write(asked)
    }
    watchingSilence(shop)
    await noSweep(() => shop.node.lookups.length === 12)
    assert.deepEqual(events(shop, 'order.pass_failed'), [])
  })

  test('a pass goes on past eight paid orders that the store fails to settle', async (t) => {
    const { noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    for (let i = 0; i < 12; i++) await shop.paid(key(i))
    const { write } = shop.db
    let settlements = 0
    shop.db.write = (asked) =>
      'provision' in asked.statements && settlements++ < 8
        ? Promise.reject(new StoreError('the page is damaged'))
        : write(asked)
    watchingSilence(shop)
    await noSweep(async () => (await shop.provisioned()).length === 4)
    const failed = events(shop, 'order.lookup_failed')
    assert.equal(new Set(failed.map(({ paymentHash }) => paymentHash)).size, 8)
    assert.equal(failed[0]?.reason, 'the page is damaged')
  })

  test('an order counts as looked up when its turn came, not when a long pass began', async (t) => {
    const { noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    const quotes = []
    for (let i = 0; i < 12; i++) quotes.push(await shop.quote(key(i)))
    const startedAt = shop.clock.now()
    shop.node.replaced.lookupInvoice = async () => {
      shop.clock.advance(10 * SECOND)
      return { state: 'open' }
    }
    const { stop } = watchingSilence(shop)
    await noSweep(() => shop.node.lookups.length === 12)
    await stop()
    const rows = await Promise.all(quotes.map((quote) => shop.order(quote)))
    const since = rows.map((row) => (Number(row?.looked_up_at) - startedAt) / SECOND)
    assert.deepEqual(
      since.toSorted((a, b) => a - b),
      [...Array(8).fill(0), ...Array(4).fill(80)],
    )
  })
})

suite('a pass of the watcher that the store refuses', () => {
  /** Refuses reads of orders in this state. `allow` ends that. */
  function refusing(shop: Shop, state: 'pending' | 'dead') {
    const read = shop.db.read
    shop.db.read = (text, ...values) =>
      text.includes(`state = '${state}'`)
        ? Promise.reject(new StoreError('no thread'))
        : read(text, ...values)
    return {
      allow: () => {
        shop.db.read = read
      },
    }
  }
  const reasons = (shop: Shop, event: string) => events(shop, event).map(({ reason }) => reason)

  test('the pass at the start is told to the log, and a sweep finds what it had to find', async (t) => {
    const { noSweep, sweeps } = ownedTimers(t)
    const shop = await aShop(t)
    await openReads(shop)
    const quote = await shop.paid()
    const { allow } = refusing(shop, 'pending')
    watchingSilence(shop)
    await noSweep(() => events(shop, 'order.pass_failed').length === 1)
    assert.match(String(reasons(shop, 'order.pass_failed')), /no thread/)
    allow()
    shop.clock.advance(16 * SECOND)
    await sweeps(async () => (await shop.order(quote))?.state === 'settled')
    assert.deepEqual(events(shop, 'order.sweep_failed'), [])
  })

  test('a sweep is told to the log, and the next one finds what it had to find', async (t) => {
    const { noSweep, sweeps } = ownedTimers(t)
    const shop = await aShop(t)
    await openReads(shop)
    const quote = await shop.quote()
    const { read } = shop.db
    let startedDead = false
    shop.db.read = (text, ...values) => {
      startedDead ||= text.includes("state = 'dead'")
      return read(text, ...values)
    }
    watchingSilence(shop)
    // The pass at the start has read that nothing is left to look up, so none of its reads is refused.
    await noSweep(() => startedDead)
    assert.equal(shop.node.lookups.length, 1)
    await shop.pay(quote)
    shop.clock.advance(16 * SECOND)
    const { allow } = refusing(shop, 'pending')
    await sweeps(() => events(shop, 'order.sweep_failed').length === 1)
    assert.match(String(reasons(shop, 'order.sweep_failed')), /no thread/)
    allow()
    await sweeps(async () => (await shop.order(quote))?.state === 'settled')
    assert.equal((await shop.order(quote))?.settled_by, 'lookup')
    assert.deepEqual(events(shop, 'order.pass_failed'), [])
  })

  test('a pass over orders whose death is a guess is told to the log, and the open ones were looked up', async (t) => {
    const { noSweep } = ownedTimers(t)
    const shop = await aShop(t)
    await shop.quote()
    refusing(shop, 'dead')
    watchingSilence(shop)
    await noSweep(() => events(shop, 'order.pass_failed').length === 1)
    assert.equal(shop.node.lookups.length, 1)
    assert.match(String(reasons(shop, 'order.pass_failed')), /no thread/)
  })
})

suite('the tidying of the watcher, by age', () => {
  /** A shop with an order for each of these assignments, at a time that is the same for all. */
  async function aged(t: TestContext, sets: Record<string, (now: number) => string>) {
    const shop = await aShop(t)
    const quotes = new Map<string, string>()
    for (const [i, name] of Object.keys(sets).entries()) {
      quotes.set(name, (await shop.quote(key(i))).orderId)
    }
    shop.clock.advance(KEEP_MS + HOUR)
    const now = shop.clock.now()
    for (const [name, set] of Object.entries(sets)) {
      const text = `update purchase_order set looked_up_at = ${now}, ${set(now)} where order_id = $1`
      await shop.db.write(unit({ text, values: [quotes.get(name) ?? ''] }))
    }
    nodeSays(shop, 'open')
    const rows = async () => {
      const orders = await Promise.all(
        [...quotes].map(async ([name, orderId]) => [name, await shop.order({ orderId })] as const),
      )
      return Object.fromEntries(orders.flatMap(([name, row]) => (row ? [[name, row]] : [])))
    }
    return { shop, rows }
  }

  test('it goes by the age of each order: 30 days after the end, a day of repeats', async (t) => {
    const { sweeps } = ownedTimers(t)
    const final = 'is_dead_final = 1'
    const settled = `state = 'settled', seed = request_hash`
    const { shop, rows } = await aged(t, {
      'dead for 30 days': (now) => `state = 'dead', ${final}, quote_expires_at = ${now - KEEP_MS}`,
      'dead for longer': (now) =>
        `state = 'dead', ${final}, quote_expires_at = ${now - KEEP_MS - 1}`,
      'over for 30 days': (now) => `state = 'settled', expires_at = ${now - KEEP_MS}`,
      'over for longer': (now) => `state = 'settled', expires_at = ${now - KEEP_MS - 1}`,
      'delivered a day ago': (now) =>
        `${settled}, expires_at = ${now + DAY}, delivered_at = ${now - DAY}`,
      'delivered later': (now) =>
        `${settled}, expires_at = ${now + DAY}, delivered_at = ${now - DAY + 1}`,
    })
    let tidied = 0
    watching(shop, async (name, everyMs, work) => {
      assert.deepEqual([name, everyMs], ['order.cleanup', 15 * SECOND])
      await work()
      tidied++
    })
    await sweeps(() => tidied === 1)
    const left = await rows()
    assert.deepEqual(Object.keys(left), [
      ...['dead for 30 days', 'over for 30 days'],
      ...['delivered a day ago', 'delivered later'],
    ])
    assert.deepEqual(
      [left['delivered a day ago']?.sealed_by, left['delivered later']?.sealed_by],
      ['age', null],
    )
    assert.equal(left['delivered a day ago']?.seed, null)
    assert.notEqual(left['delivered later']?.seed, null)
  })

  test('a clean-up that the store refused is told to the log, and the next one goes on', async (t) => {
    const { sweeps } = ownedTimers(t)
    const { shop, rows } = await aged(t, {
      old: (now) => `state = 'dead', is_dead_final = 1, quote_expires_at = ${now - KEEP_MS - 1}`,
    })
    const write = shop.db.write
    let isRefused = true
    shop.db.write = (ask) =>
      isRefused && 'purge' in ask.statements
        ? Promise.reject(new StoreError('no thread'))
        : write(ask)
    watchingSilence(shop)
    await sweeps(() => events(shop, 'order.cleanup_failed').length === 1)
    assert.match(String(events(shop, 'order.cleanup_failed')[0]?.reason), /no thread/)
    assert.deepEqual(Object.keys(await rows()), ['old'])
    isRefused = false
    await sweeps(async () => Object.keys(await rows()).length === 0)
  })

  test('it tidies up nothing while the clock is held, and everything afterwards', async (t) => {
    const { sweeps } = ownedTimers(t)
    const shop = await aShop(t)
    await openReads(shop)
    await shop.paidAndSeen(key(1))
    const states = async () =>
      (
        await shop.db.read('select state, seed is null as wiped from purchase_order order by state')
      ).map(({ state, wiped }) => `${state}${Number(wiped) === 1 ? ', wiped' : ''}`)
    let tidied = 0
    watching(shop, async (_name, _everyMs, work) => {
      await work()
      tidied++
    })
    shop.clock.hold(true)
    shop.clock.jump(1000 * DAY)
    await sweeps(() => tidied === 2)
    assert.deepEqual(await states(), ['settled'])
    shop.clock.hold(false)
    await sweeps(async () => (await states()).length === 0)
  })
})
