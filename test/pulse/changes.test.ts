import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHints } from '../../src/db/hints.ts'
import type { PulseChange, PulseListener } from '../../src/pulse/changes.ts'
import { ALWAYS_SEEING, type Fairness } from '../../src/pulse/fairness.ts'
import { PULSE_PLANS, type PulsePlan } from '../../src/pulse/schema.ts'
import { createPulse, type Signal } from '../../src/pulse/service.ts'
import { overBy } from '../support/deletion.ts'
import type { After } from '../support/folder.ts'
import { provisioned } from '../support/pulse-monitor.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** A monitor of a minute of interval and one of grace, and what is told of it, in seconds from its beginning. */
async function aMonitor(t: After, plan: Partial<PulsePlan> = {}) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  await db.write(
    unit({ text: 'create table told (public_id text, told text not null)', values: [] }),
  )
  let now = T
  let fairness: Fairness = ALWAYS_SEEING
  let isBroken = false
  const stored: string[] = []
  const seconds = (time: number) => (time - T) / SECOND
  const nameOf = ({ type, since }: PulseChange) => `${type} since ${seconds(since)}`
  const listener: PulseListener = {
    onChange: (change) => [
      {
        text: 'insert into told (public_id, told) values ($1, $2)',
        values: [change.publicId, isBroken ? null : nameOf(change)],
      },
    ],
    onGone: (publicIds) =>
      publicIds.map((publicId) => ({
        text: 'delete from told where public_id = $1',
        values: [publicId],
      })),
    onStored: (changes) => void stored.push(...changes.map(nameOf)),
  }
  let meanwhile: (() => Promise<void>) | null = null
  const write: typeof db.write = async (unit) => {
    const work = meanwhile
    meanwhile = null
    await work?.()
    return db.write(unit)
  }
  const parts = {
    ...{ db: { ...db, write }, hints: createHints(), clock: { now: () => now } },
    watch: {
      notice: async () => undefined,
      fairness: () => fairness,
      pingTime: async () => now,
    },
    listeners: [listener],
    onArrival: () => undefined,
  }
  const [pulse, other] = [createPulse(parts), createPulse(parts)]
  const bought = { ...PULSE_PLANS.spark, ...plan }
  const { publicId, ownerToken, pingToken } = await provisioned(db, bought, now)

  async function monitor() {
    const found = await pulse.owned(publicId, ownerToken)
    assert.ok(found)
    return found
  }
  return {
    ...{ db, pulse, other, stored, monitor },
    at(ms: number) {
      now = T + ms
    },
    see(change: Partial<Fairness>) {
      fairness = { ...ALWAYS_SEEING, ...change }
    },
    /** Does this before the next unit is written. */
    meanwhile(work: () => Promise<void>) {
      meanwhile = work
    },
    breakListener(is: boolean) {
      isBroken = is
    },
    async ping() {
      const facts = await pulse.pinged(publicId, pingToken)
      return facts !== null && pulse.signal(facts, { kind: 'ping', rid: null })
    },
    async signal(signal: Signal) {
      const facts = await pulse.pinged(publicId, pingToken)
      return facts !== null && pulse.signal(facts, signal)
    },
    /** A ping with the right token that is refused, and reaches the store. */
    async refuse() {
      const facts = await pulse.pinged(publicId, pingToken)
      assert.ok(facts)
      pulse.refused(facts)
      await pulse.flushSigns()
    },
    async told() {
      return (await db.read('select told from told')).map(({ told }) => told)
    },
    async spells() {
      const rows = await db.read(
        'select began_at, ended_at, ended_by, cause from pulse_late_spell order by began_at',
      )
      return rows.map(({ began_at, ended_at, ended_by, cause }) => [
        seconds(Number(began_at)),
        ended_at === null ? null : seconds(Number(ended_at)),
        ended_by,
        cause,
      ])
    },
    purge: () => pulse.purge(overBy(now)),
    async due() {
      const { check_at } = await monitor()
      return check_at === null ? null : seconds(check_at)
    },
  }
}

test('a lateness is told once, from its deadline, with the silence that begins, and so is the ping that ends it', async (t) => {
  const { pulse, ping, at, told, spells, stored } = await aMonitor(t)
  await ping()
  at(119 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), [])
  at(123 * SECOND)
  await pulse.scan()
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120'])
  assert.deepEqual(await spells(), [[120, null, null, 'silence']])
  at(200 * SECOND)
  await ping()
  await ping()
  assert.deepEqual(await told(), ['late since 120', 'recovered since 200'])
  assert.deepEqual(stored, await told())
  assert.deepEqual(await spells(), [[120, 200, 'ping', 'silence']])
  at(320 * SECOND)
  await pulse.scan()
  assert.deepEqual((await told()).slice(2), ['late since 320'])
})

test('two instances that scan at once tell of a lateness once', async (t) => {
  const { pulse, other, ping, at, told, spells } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  await Promise.all([pulse.scan(), other.scan(), pulse.scan(), other.scan()])
  assert.deepEqual(await told(), ['late since 120'])
  assert.equal((await spells()).length, 1)
})

test('a scan takes its turn among the instances only while a monitor is due and may be judged', async (t) => {
  const { pulse, ping, at, see, told } = await aMonitor(t)
  const turns: unknown[] = []
  const scan = () =>
    pulse.scan(async (name, everyMs, work) => {
      turns.push([name, everyMs])
      await work()
    })
  await ping()
  at(119 * SECOND)
  await scan()
  at(121 * SECOND)
  see({ isHeld: true })
  await scan()
  assert.deepEqual(turns, [])
  see({})
  await scan()
  assert.deepEqual([turns, await told()], [[['pulse.scan', 2 * SECOND]], ['late since 120']])
  await scan()
  assert.equal(turns.length, 1)
})

test('a change and what is told of it are stored together or not at all', async (t) => {
  const { pulse, ping, at, told, spells, monitor, breakListener, stored } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  breakListener(true)
  await assert.rejects(pulse.scan())
  assert.deepEqual([await told(), await spells(), stored], [[], [], []])
  assert.equal((await monitor()).late_since, null)
  breakListener(false)
  await pulse.scan()
  assert.deepEqual(await told(), [], 'what failed waits')
  at(131 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120'])
})

test('pings move no time to look at a monitor, and a look that comes too early moves itself', async (t) => {
  const { pulse, ping, at, due, told } = await aMonitor(t)
  assert.equal(await due(), (0.9 * DAY) / SECOND, 'before the first ping: shortly before the end')
  await ping()
  assert.equal(await due(), 120)
  for (const second of [60, 119, 170]) {
    at(second * SECOND)
    await ping()
    assert.equal(await due(), 120)
  }
  await pulse.scan()
  assert.equal(await due(), 290)
  assert.deepEqual(await told(), [])
})

test('a ping after a deadline that nobody has noticed yet tells of both', async (t) => {
  const { ping, at, told, spells } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  await ping()
  assert.deepEqual(await told(), ['late since 120', 'recovered since 121'])
  assert.deepEqual(await spells(), [[120, 121, 'ping', 'silence']])
})

test('a silence is told ten seconds after the lateness, and never while the service doubts itself', async (t) => {
  const { pulse, ping, at, told, see } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  await pulse.scan()
  at(129 * SECOND)
  await pulse.scan()
  see({ isDoubtful: true })
  at(140 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120'])
  see({})
  at(146 * SECOND)
  await pulse.scan()
  at(200 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120', 'silent since 120'])
})

test('a blind window moves the lateness, and its scan', async (t) => {
  const { pulse, ping, at, told, see, due } = await aMonitor(t)
  await ping()
  see({ windows: [{ beganAt: T + 100 * SECOND, endedAt: T + 500 * SECOND }] })
  at(500 * SECOND)
  await pulse.scan()
  assert.equal(await due(), 620)
  at(619 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), [])
  at(621 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 620'])
})

test('while the clock is in doubt nothing is told', async (t) => {
  const { pulse, ping, at, told, see } = await aMonitor(t)
  await ping()
  see({ isHeld: true })
  at(10 * MINUTE)
  await pulse.scan()
  assert.deepEqual(await told(), [])
  see({})
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120'])
})

test('a tenth of the pings left is told, and the last one', async (t) => {
  const { ping, at, told } = await aMonitor(t, { heartbeatLimit: 20 })
  for (let i = 1; i <= 20; i++) {
    at(i * SECOND)
    await ping()
  }
  assert.equal(await ping(), false)
  assert.deepEqual(await told(), ['exhausting since 18', 'exhausted since 20'])
})

test('an end that comes is told once, a tenth of a short life before it', async (t) => {
  const { pulse, at, told } = await aMonitor(t)
  at(0.9 * DAY - 1)
  await pulse.scan()
  assert.deepEqual(await told(), [])
  at(0.9 * DAY)
  await pulse.scan()
  await pulse.scan()
  assert.deepEqual(await told(), [`expiring since ${(0.9 * DAY) / SECOND}`])
})

test('new settings that end a lateness tell of it, and close its silence', async (t) => {
  const { pulse, ping, at, told, spells, monitor } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  await pulse.scan()
  at(130 * SECOND)
  await pulse.change(await monitor(), { graceSeconds: 600 })
  assert.deepEqual(await told(), ['late since 120', 'recovered since 130'])
  assert.deepEqual(await spells(), [[120, 130, 'settings', 'silence']])
  at(130 * SECOND + 660 * SECOND)
  await pulse.scan()
  assert.deepEqual((await told()).slice(2), ['late since 790'])
})

test('what is stored of a monitor goes with it, destroyed or expired', async (t) => {
  for (const isDestroyed of [true, false]) {
    const { pulse, ping, at, told, spells, monitor, purge } = await aMonitor(t)
    await ping()
    at(3 * MINUTE)
    await pulse.scan()
    assert.equal((await spells()).length, 1)
    if (isDestroyed) await pulse.destroy(await monitor())
    else {
      at(2 * DAY)
      assert.equal(await purge(), 1)
    }
    assert.deepEqual([await told(), await spells()], [[], []])
  }
})

test('a failure is told once until a run succeeds, and a failed run is no silence', async (t) => {
  const { pulse, ping, signal, at, told, spells, monitor } = await aMonitor(t)
  const fail = (exitCode: number | null) => signal({ kind: 'end', exitCode, rid: null })
  await ping()
  for (const [second, code] of [
    [10, 7],
    [20, null],
    [30, 1],
  ] as const) {
    at(second * SECOND)
    await fail(code)
  }
  assert.deepEqual(await told(), ['failed since 10'])
  at(149 * SECOND)
  await pulse.scan()
  assert.equal((await monitor()).late_since, null, 'it still pings')
  assert.deepEqual(await spells(), [[10, null, null, 'failure']])
  await ping()
  await fail(2)
  assert.deepEqual(await told(), ['failed since 10', 'recovered since 149', 'failed since 149'])
  at(270 * SECOND)
  await pulse.scan()
  assert.deepEqual((await told()).slice(3), ['late since 269'])
  assert.deepEqual(
    await spells(),
    [
      [10, 149, 'ping', 'failure'],
      [149, null, null, 'failure'],
    ],
    'it was late before',
  )
})

test('a refused ping of a late job puts off its silence by an interval and a grace', async (t) => {
  const { pulse, ping, at, told, refuse } = await aMonitor(t)
  await ping()
  at(100 * SECOND)
  await refuse()
  at(121 * SECOND)
  await pulse.scan()
  at(229 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120'])
  at(231 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120', 'silent since 120'])
})

test('a refused ping that reaches the store while a silence is being confirmed puts it off', async (t) => {
  const { pulse, ping, at, told, refuse, meanwhile } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  await pulse.scan()
  at(131 * SECOND)
  meanwhile(refuse)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120'])
  at(262 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120', 'silent since 120'])
})

test('what else is told while the service doubts itself confirms no silence', async (t) => {
  const { pulse, ping, at, told, see } = await aMonitor(t)
  const end = 0.9 * DAY
  at(end - 125 * SECOND)
  await ping()
  at(end - 4 * SECOND)
  await pulse.scan()
  see({ isDoubtful: true })
  at(end + 10 * SECOND)
  await pulse.scan()
  assert.deepEqual(
    (await told()).map((line) => String(line).split(' ')[0]),
    ['late', 'expiring'],
  )
})
