import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Timing } from '../../src/pulse/schedule.ts'
import type { PulsePlan } from '../../src/pulse/schema.ts'
import type { PulseChange, Signal } from '../../src/pulse/transition.ts'
import type { MonitorChange } from '../../src/switches/switches.ts'
import type { After } from '../support/folder.ts'
import { aMonitor as aPulseMonitor, DAY, MINUTE, SECOND, T } from '../support/pulse-monitor.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'

const HOUR = 60 * MINUTE
const MINUTELY: Timing = { intervalSeconds: 60, graceSeconds: 60, cron: '', timeZone: '' }

/** A monitor, and what is told of it, in seconds from its beginning. */
async function aMonitor(t: After, plan: Partial<PulsePlan> = {}) {
  let timings: Timing[] = []
  let isBroken = false
  let wakes = 0
  const seconds = (time: number) => (time - T) / SECOND
  const nameOf = ({ type, since }: Pick<PulseChange, 'type' | 'since'>) =>
    `${type} since ${seconds(since)}`
  const alerts = { tell: () => [], drop: () => [], wake: () => void wakes++ }
  const switches = {
    timings: async () => timings.map((timing) => JSON.stringify(timing)),
    onChange: (change: MonitorChange) => [
      {
        text: 'insert into told (public_id, told) values ($1, $2)',
        values: [change.publicId, isBroken ? null : nameOf(change as MonitorChange & PulseChange)],
      },
    ],
    onGone: (publicIds: readonly string[]) =>
      publicIds.map((publicId) => ({
        text: 'delete from told where public_id = $1',
        values: [publicId],
      })),
  }
  const one = await aPulseMonitor(t, plan, { alerts, switches, switchWaitMs: HOUR })
  const { db } = one
  await db.write(
    unit({ text: 'create table told (public_id text, told text not null)', values: [] }),
  )
  let meanwhile: (() => Promise<void>) | null = null
  const write: typeof db.write = async (unit) => {
    const work = meanwhile
    meanwhile = null
    await work?.()
    return db.write(unit)
  }
  const [pulse, other] = [one.run({ ...db, write }), one.run()]
  return {
    ...one,
    pulse,
    other,
    ping: () => one.ping({ by: pulse }),
    signal: (signal: Signal) => one.signal(signal, { by: pulse }),
    /** How often the alerts were woken after a unit. */
    wakes: () => wakes,
    /** Secrets wait for the silence of the monitor, bound while it had these intervals and graces. */
    bind(...bound: Partial<Timing>[]) {
      timings = bound.map((timing) => ({ ...MINUTELY, ...timing }))
    },
    /** Does this before the next unit is written. */
    meanwhile(work: () => Promise<void>) {
      meanwhile = work
    },
    breakListener(is: boolean) {
      isBroken = is
    },
    async told() {
      return (await db.read('select told from told')).map(({ told }) => told)
    },
    async spells() {
      const rows = await db.read(
        'select began_at, ended_at, cause from pulse_late_spell order by began_at',
      )
      return rows.map(({ began_at, ended_at, cause }) => [
        seconds(Number(began_at)),
        seconds(Number(ended_at)),
        cause,
      ])
    },
    async due() {
      const { check_at } = await one.monitor()
      return check_at === null ? null : seconds(check_at)
    },
  }
}

test('a lateness is told once, from its deadline, with the silence that begins, and so is the ping that ends it', async (t) => {
  const { pulse, ping, at, told, spells, wakes } = await aMonitor(t)
  await ping()
  at(119 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), [])
  at(123 * SECOND)
  await pulse.scan()
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120'])
  assert.deepEqual(await spells(), [], 'one that lasts is told by the monitor')
  at(200 * SECOND)
  await ping()
  await ping()
  assert.deepEqual(await told(), ['late since 120', 'recovered since 200'])
  assert.equal(wakes(), 2)
  assert.deepEqual(await spells(), [[120, 200, 'silence']])
  at(320 * SECOND)
  await pulse.scan()
  assert.deepEqual((await told()).slice(2), ['late since 320'])
})

test('a ping between the look at a late monitor and its lateness is kept, and tells both', async (t) => {
  const { pulse, ping, at, told, spells, meanwhile, monitor } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  meanwhile(async () => void (await ping()))
  await pulse.scan()
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120', 'recovered since 121'])
  assert.deepEqual(await spells(), [[120, 121, 'silence']])
  const { ping_count, late_since } = await monitor()
  assert.deepEqual([ping_count, late_since], [2, null])
})

test('two instances that scan at once tell of a lateness once', async (t) => {
  const { pulse, other, ping, at, told } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  await Promise.all([pulse.scan(), other.scan(), pulse.scan(), other.scan()])
  assert.deepEqual(await told(), ['late since 120'])
})

test('a change and what is told of it are stored together or not at all', async (t) => {
  const { pulse, ping, at, told, spells, monitor, breakListener, wakes } = await aMonitor(t)
  await ping()
  at(121 * SECOND)
  breakListener(true)
  await assert.rejects(pulse.scan())
  assert.deepEqual([await told(), await spells(), wakes()], [[], [], 0])
  assert.equal((await monitor()).late_since, null)
  breakListener(false)
  await pulse.scan()
  assert.deepEqual(await told(), [], 'what failed waits')
  at(131 * SECOND)
  await pulse.scan()
  assert.deepEqual(await told(), ['late since 120'])
})

test('a ping is judged by the monitor as it is stored, not as the ping has found it', async (t) => {
  const { db, pulse, ping, monitor } = await aMonitor(t, { heartbeatLimit: 1 })
  const limit = (heartbeats: number) =>
    db.write(
      unit({
        text: 'update pulse_monitor set heartbeat_limit = $1, revision = revision + 1',
        values: [heartbeats],
      }),
    )
  await ping()
  const full = await monitor()
  await limit(2)
  const free = await monitor()
  assert.equal(await pulse.signal(full, { kind: 'ping', rid: null }), true)
  assert.equal(await pulse.signal(free, { kind: 'ping', rid: null }), false)
  assert.equal((await monitor()).accepted_heartbeat_count, 2)
})

test('a unit that fails is told to each ping that waited for it, and the next ping is stored', async (t) => {
  const { ping, at, bind, told, breakListener } = await aMonitor(t)
  bind({})
  await ping()
  at(121 * SECOND)
  breakListener(true)
  let failed = 0
  for (const _ of [1, 2, 3]) ping().catch(() => failed++)
  await until('all three are told', () => failed === 3)
  breakListener(false)
  assert.equal(await ping(), true)
  assert.deepEqual(await told(), ['late since 120', 'recovered since 121'])
})

test('pings move no time to look at a monitor, and a look that comes too early moves itself', async (t) => {
  const { pulse, ping, at, due, told } = await aMonitor(t)
  assert.equal(await due(), (0.9 * DAY) / SECOND, 'before the first ping: shortly before the end')
  await ping()
  assert.equal(await due(), 120)
  for (const second of [60, 119]) {
    at(second * SECOND)
    await ping()
    assert.equal(await due(), 120)
  }
  at(170 * SECOND)
  await pulse.scan()
  assert.equal(await due(), 239)
  await ping()
  assert.equal(await due(), 239)
  at(239 * SECOND)
  await pulse.scan()
  assert.equal(await due(), 290)
  assert.deepEqual(await told(), [])
})

test('a ping through an instance whose clock is a little behind ends the lateness that another one has stored', async (t) => {
  const { pulse, ping, at, told, spells, monitor } = await aMonitor(t)
  await ping()
  at(120 * SECOND)
  await pulse.scan()
  at(119.5 * SECOND)
  assert.equal((await pulse.status(await monitor())).state, 'late')
  await ping()
  assert.deepEqual(await told(), ['late since 120', 'recovered since 120'])
  assert.deepEqual(await spells(), [[120, 120, 'silence']])
  assert.equal((await monitor()).last_ping_at, T + 120 * SECOND)
})

test('instances take turns at a scan only while a monitor is due', async (t) => {
  const { pulse, ping, at, told } = await aMonitor(t)
  const turns: unknown[] = []
  const scan = () =>
    pulse.scan(async (name, everyMs, work) => {
      turns.push([name, everyMs])
      await work()
    })
  await ping()
  at(119 * SECOND)
  await scan()
  assert.deepEqual(turns, [])
  at(121 * SECOND)
  await scan()
  assert.deepEqual([turns, await told()], [[['pulse.scan', 2 * SECOND]], ['late since 120']])
  await scan()
  await scan()
  assert.equal(turns.length, 1, 'nothing waits for its silence')
})

/** Scans at these seconds, and returns those at which a silence was told. */
async function silences(
  { pulse, at, told }: Awaited<ReturnType<typeof aMonitor>>,
  ...seconds: number[]
): Promise<number[]> {
  const found: number[] = []
  const count = async () => (await told()).filter((one) => String(one).startsWith('silent')).length
  for (const second of seconds) {
    const before = await count()
    at(second * SECOND)
    await pulse.scan()
    await pulse.scan()
    if ((await count()) > before) found.push(second)
  }
  return found
}

test('a silence opens what waits for it an hour after the lateness, once, and a ping calls it off', async (t) => {
  const monitor = await aMonitor(t)
  const { ping, at, bind } = monitor
  bind({})
  await ping()
  assert.deepEqual(await silences(monitor, 121, 3719), [])
  at(3719 * SECOND)
  await ping()
  const lateAt = 3719 + 120
  const opensAt = lateAt + 3600
  assert.deepEqual(await silences(monitor, 3720, lateAt + 1, opensAt - 1, opensAt, opensAt + 9), [
    opensAt,
  ])
})

test('a silence waits for the grace where that is longer than an hour', async (t) => {
  const monitor = await aMonitor(t, { minimumGraceSeconds: 7200 })
  monitor.bind({ graceSeconds: 7200 })
  await monitor.ping()
  assert.deepEqual(await silences(monitor, 7261, 14_459, 14_460), [14_460])
})

test('a shorter interval opens nothing earlier than the one at which a secret was bound', async (t) => {
  const monitor = await aMonitor(t)
  const { pulse, ping, bind } = monitor
  await pulse.change(await monitor.monitor(), { expectedIntervalSeconds: 3600 })
  bind({ intervalSeconds: 3600 }, {})
  await ping()
  await pulse.change(await monitor.monitor(), { expectedIntervalSeconds: 20 })
  const opensAt = 3600 + 60 + 3600
  assert.deepEqual(await silences(monitor, 81, 81 + 3600, opensAt - 1, opensAt), [opensAt])
})

test('a schedule that is taken away opens nothing earlier than its next run would have', async (t) => {
  const monitor = await aMonitor(t)
  monitor.bind({ cron: '0 5 * * *', timeZone: 'UTC' })
  await monitor.ping()
  const run = (Date.UTC(2026, 0, 2, 5) - T) / SECOND
  const opensAt = run + 60 + 3600
  assert.deepEqual(await silences(monitor, 121, 3721, opensAt - 1, Math.ceil(opensAt)), [
    Math.ceil(opensAt),
  ])
})

test('a window between lateness and opening moves the opening to as long after the next expected ping', async (t) => {
  const monitor = await aMonitor(t)
  const { ping, blind, bind } = monitor
  bind({})
  await ping()
  assert.deepEqual(await silences(monitor, 121, 3600), [])
  blind([3000, 3700])
  const opensAt = 3700 + 60 + 3600
  assert.deepEqual(await silences(monitor, 3721, opensAt - 1, opensAt), [opensAt])
})

test('nothing opens while the clock is held, and does so after', async (t) => {
  const monitor = await aMonitor(t)
  monitor.bind({})
  await monitor.ping()
  await silences(monitor, 121)
  monitor.hold(true)
  assert.deepEqual(await silences(monitor, 3721, 3731), [])
  monitor.hold(false)
  assert.deepEqual(await silences(monitor, 3742), [3742])
})

test('the end of a monitor that is late does not stop its silence, and until then it is not deleted', async (t) => {
  const monitor = await aMonitor(t, { durationSeconds: 300 })
  const { ping, bind, purge } = monitor
  bind({ graceSeconds: 2 * 86_400 })
  await ping()
  assert.deepEqual(await silences(monitor, 121, 301, 86_400), [])
  monitor.at(2 * DAY)
  assert.equal(await purge(), 0)
  const opensAt = 60 + 4 * 86_400
  assert.deepEqual(await silences(monitor, opensAt - 1, opensAt), [opensAt])
  assert.equal(await purge(), 1)
})

test('a monitor that ends in good health falls silent for nobody', async (t) => {
  const monitor = await aMonitor(t, { durationSeconds: 100 })
  monitor.bind({})
  await monitor.ping()
  assert.deepEqual(await silences(monitor, 101, 200, 9000), [])
  monitor.at(2 * DAY)
  assert.equal(await monitor.purge(), 1)
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
  assert.deepEqual(await spells(), [[120, 130, 'silence']])
  at(130 * SECOND + 660 * SECOND)
  await pulse.scan()
  assert.deepEqual((await told()).slice(2), ['late since 790'])
})

test('what is stored of a monitor goes with it, destroyed or expired', async (t) => {
  for (const isDestroyed of [true, false]) {
    const { pulse, ping, at, told, spells, monitor, purge } = await aMonitor(t)
    await ping()
    at(3 * MINUTE)
    await ping()
    assert.equal((await spells()).length, 1)
    if (isDestroyed) await pulse.destroy(await monitor())
    else {
      at(2 * DAY)
      await pulse.scan()
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
  await ping()
  await fail(2)
  assert.deepEqual(await told(), ['failed since 10', 'recovered since 149', 'failed since 149'])
  at(270 * SECOND)
  await pulse.scan()
  assert.deepEqual((await told()).slice(3), ['late since 269'])
  at(280 * SECOND)
  await ping()
  assert.deepEqual(
    await spells(),
    [
      [10, 149, 'failure'],
      [149, 280, 'failure'],
    ],
    'it was late before',
  )
})
