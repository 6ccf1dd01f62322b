/** One run: a seed decides who buys what, what goes wrong and when, and in which order everything happens. */

import { alertsStory } from './alerts/story.ts'
import { balance } from './books.ts'
import { type Market, openMarket } from './gate/market.ts'
import { inboxStory, monitorStory, secretStory } from './jobs.ts'
import { createLedger, type Violation } from './ledger.ts'
import { mendPayments } from './operator.ts'
import type { Exchange, Run } from './run-context.ts'
import { createSettings } from './settings.ts'
import { storm, up } from './storm.ts'
import { anyStory, type Weather, weatherOf } from './weather.ts'
import { openDisk } from './world/disk.ts'
import { createLightningNetwork } from './world/node.ts'
import { createOutside } from './world/outbound.ts'
import { createScheduler } from './world/scheduler.ts'
import { createService } from './world/service.ts'
import { enterWorld, type World } from './world/world.ts'

export type RunResult = {
  seed: number
  violations: Violation[]
  fingerprint: string
  events: number
  requests: number
  /** How long it lasted by its own clock. */
  simulatedMinutes: number
  trace: string[]
  /** What the service has logged. */
  logged: string[]
}

export type RunOptions = {
  /** An empty store with its tables. */
  image: Uint8Array
  isTraced?: boolean
  /** After so many events the machine's loop turns. The run is the same, however many they are. */
  eventsPerTurn?: number | undefined
}

const STORMY_MS = 60_000
/** Longer than any quote of a run, and than what the service waits before it looks a late payment up again. */
const CALM_MS = 150_000
/** Longer than any call that is under way once all clients have ended. */
const LOOK_MS = 8_000
const MAX_EVENTS = 400_000

export async function runSeed(
  seed: number,
  { image, isTraced = false, eventsPerTurn }: RunOptions,
): Promise<RunResult> {
  const scheduler = createScheduler(seed, eventsPerTurn)
  const { random } = scheduler
  const disk = openDisk(image)
  const world: World = {
    scheduler,
    disk,
    node: createLightningNetwork(),
    outside: createOutside(),
    hints: new Map(),
    logged: [],
  }
  enterWorld(world)
  const service = createService()
  const ledger = createLedger({ isTraced, now: scheduler.elapsed })
  const weather = weatherOf(random, seed)
  let stormEndsAt = STORMY_MS
  let requests = 0
  let isCalm = false
  let isIdle = false
  const awaiting = {
    request: new Set<() => void>(),
    answer: new Set<() => void>(),
    early: new Set<() => void>(),
  }
  let isOver = false
  const run: Run = {
    world,
    service,
    ledger,
    weather,
    settings: createSettings({ world }),
    buyers: new Map(),
    errands: [],
    operator: { isMending: false, isRestoring: false },
    isStormy: () => scheduler.elapsed() < stormEndsAt && !isIdle,
    isCalm: () => isCalm,
    exchanged: (what) => new Promise((resolve) => void awaiting[what].add(resolve)),
    async ask(who, ask) {
      requests++
      happened('request')
      const answer = await service.ask(ask)
      if (answer && answer.status < 300) {
        happened('answer')
        if (!disk.isFlushed()) happened('early')
      }
      ledger.noteAnswer(`${who} ${ask.method ?? 'GET'} ${ask.target}`, answer)
      return answer
    },
  }

  function happened(what: Exchange): void {
    for (const resolve of awaiting[what]) resolve()
    awaiting[what].clear()
  }

  async function whole(): Promise<void> {
    ledger.note(JSON.stringify(weather))
    service.clocksWithinMs = weather.clocksWithinMs
    world.node.setClocks(weather.nodeClocksWithinMs)
    world.node.setPartial(weather.partial)
    world.node.setTogether(weather.togetherMs)
    if (weather.hasGate) run.settings.openGate()
    await up(run, weather)
    stormEndsAt = scheduler.elapsed() + STORMY_MS
    const market = weather.hasGate ? openMarket(run) : null
    const stories = Array.from({ length: random.int(2, 5) }, (_, i) => tell(`b${i}`, market))
    const told = Promise.all([
      ...stories,
      weather.restore ? scheduler.sleep(STORMY_MS) : null,
    ]).then(() => {
      isIdle = true
    })
    void mendPayments(run)
    fail(weather)
    await storm(run, weather, told)
    ledger.note('calm')
    await mend()
    await Promise.all([told, market?.closes])
    await Promise.all(run.errands)
    await rest()
    await balance(run, await market?.balance())
  }

  /** From here on the service, the node and the network fail as the weather says. */
  function fail({ losing, nodeStalling: stalling, ...weather }: Weather): void {
    service.losing = losing
    Object.assign(world.outside, { losing, stalling })
    disk.failing = weather.diskFailing
    Object.assign(world.node, {
      failing: weather.nodeFailing,
      stalling,
      telling: weather.telling,
      tellingWithinMs: weather.togetherMs > 0 ? 5 : 200,
      forgetting: weather.nodeForgetting,
      lagging: weather.nodeLagging,
    })
  }

  /** The faults are over. */
  async function mend(): Promise<void> {
    service.losing = 0
    Object.assign(world.outside, { losing: 0, stalling: 0 })
    Object.assign(disk, { failing: 0, isRefusing: false })
    scheduler.unjump()
    isCalm = true
    Object.assign(world.node, { failing: 0, stalling: 0, forgetting: 0, lagging: 0 })
    world.node.setPartial(0)
    run.settings.sellAll()
    for (const process of service.processes) service.reload(process, run.settings.catalog())
    await up(run, weather)
    if (weather.isAlone) await Promise.all(service.processes.slice(1).map(service.stop))
  }

  /** Until nothing is left to come, or longer than anything may take. */
  async function rest(): Promise<void> {
    const endsAt = scheduler.elapsed() + CALM_MS
    do await scheduler.sleep(LOOK_MS)
    while (scheduler.elapsed() < endsAt && (weather.isLong || isAwaited()))
  }

  /**
   * Whether a payment has not come to its end, at the node or in the store. The operator looks for those that a
   * restored backup has lost.
   */
  function isAwaited(): boolean {
    const withoutOrder = ledger.restores > 0 ? 'lost' : 'settled'
    const rows = disk.read('select payment_hash, state from purchase_order')
    const states = new Map(rows.map(({ payment_hash, state }) => [payment_hash, state]))
    return [...world.node.invoices.values()].some(
      ({ state, paymentHash }) =>
        state === 'held' ||
        (state === 'settled' &&
          !['settled', 'refunded'].includes(String(states.get(paymentHash) ?? withoutOrder))),
    )
  }

  async function tell(who: string, market: Market | null): Promise<void> {
    await scheduler.sleep(random.next() * 12_000)
    if (market && random.chance(0.75)) return market.story(who)
    switch (anyStory(random, weather)) {
      case 'inbox':
        return inboxStory(run, who)
      case 'secret':
        return secretStory(run, who)
      case 'alerts':
        return alertsStory(run, who)
      case 'monitor':
        return monitorStory(run, who, false)
      case 'switch':
        return monitorStory(run, who, true)
    }
  }

  whole().then(
    () => {
      isOver = true
    },
    (error: unknown) => {
      ledger.break('rest is reached', error instanceof Error ? String(error.stack) : String(error))
      isOver = true
    },
  )
  try {
    const events = await scheduler.run(() => isOver, MAX_EVENTS)
    if (!isOver) ledger.break('rest is reached', `nothing ended within ${events} events`)
    return {
      seed,
      violations: ledger.violations,
      fingerprint: ledger.fingerprint(),
      events,
      requests,
      simulatedMinutes: scheduler.elapsed() / 60_000,
      trace: ledger.trace,
      logged: world.logged,
    }
  } finally {
    for (const process of [...service.processes]) service.kill(process)
    enterWorld(null)
    disk.close()
  }
}
