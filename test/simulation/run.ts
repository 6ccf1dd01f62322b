/** One run: a seed decides who buys what, what goes wrong and when, and in which order everything happens. */

import { alertsStory } from './alerts/story.ts'
import { balance } from './books.ts'
import { type Market, openMarket } from './gate/market.ts'
import { inboxStory, monitorStory, secretStory } from './jobs.ts'
import { createLedger, type Violation } from './ledger.ts'
import { mendPayments } from './operator.ts'
import type { Run } from './run-context.ts'
import { createSettings } from './settings.ts'
import { storm, up, weatherOf } from './storm.ts'
import { openDisk } from './world/disk.ts'
import { createLightningNetwork } from './world/node.ts'
import { createOutside } from './world/outbound.ts'
import { realNow } from './world/real.ts'
import { createScheduler } from './world/scheduler.ts'
import { createService } from './world/service.ts'
import { enterWorld, type World } from './world/world.ts'

export type RunResult = {
  seed: number
  violations: Violation[]
  fingerprint: string
  events: number
  requests: number
  simulatedMs: number
  realMs: number
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

const STORMY_MS = 100_000
/** Longer than any quote of a run, and than what the service waits before it looks a late payment up again. */
const CALM_MS = 150_000
const MAX_EVENTS = 400_000

export async function runSeed(
  seed: number,
  { image, isTraced = false, eventsPerTurn }: RunOptions,
): Promise<RunResult> {
  const startedAt = realNow()
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
  let stormEndsAt = STORMY_MS
  let requests = 0
  let isCalm = false
  let isOver = false
  const run: Run = {
    ...{ world, service, ledger, settings: createSettings({ world }) },
    ...{ buyers: new Map(), errands: [], operator: { isMending: false, isRestoring: false } },
    isStormy: () => scheduler.elapsed() < stormEndsAt,
    isCalm: () => isCalm,
    async ask(who, ask) {
      requests++
      const answer = await service.ask(ask)
      ledger.noteAnswer(`${who} ${ask.method ?? 'GET'} ${ask.target}`, answer)
      return answer
    },
  }

  async function whole(): Promise<void> {
    const weather = weatherOf(run, seed)
    ledger.note(JSON.stringify(weather))
    service.clocksWithinMs = weather.clocksWithinMs
    world.node.setClocks(weather.nodeClocksWithinMs)
    world.node.setPartial(weather.partial)
    if (weather.hasGate) run.settings.openGate()
    await up(run, weather)
    stormEndsAt = scheduler.elapsed() + STORMY_MS
    const market = weather.hasGate ? openMarket(run, weather) : null
    const stories = Array.from({ length: random.int(3, 8) }, (_, i) => tell(`b${i}`, market))
    void mendPayments(run)
    await storm(run, weather)
    ledger.note('calm')
    Object.assign(service, { losing: 0 })
    Object.assign(world.outside, { losing: 0, stalling: 0 })
    Object.assign(disk, { failing: 0, isRefusing: false })
    scheduler.unjump()
    isCalm = true
    Object.assign(world.node, { failing: 0, stalling: 0, forgetting: 0, lagging: 0 })
    world.node.setPartial(0)
    run.settings.sellAll()
    for (const process of service.processes) service.reload(process, run.settings.catalog())
    await up(run, weather)
    await Promise.all([...stories, market?.closes])
    await Promise.all(run.errands)
    await scheduler.sleep(CALM_MS)
    await balance(run, await market?.balance())
  }

  async function tell(who: string, market: Market | null): Promise<void> {
    await scheduler.sleep(random.next() * 20_000)
    if (market && random.chance(0.5)) return market.story(who)
    const draw = random.next()
    if (draw < 0.35) return inboxStory(run, who)
    if (draw < 0.6) return secretStory(run, who)
    if (draw < 0.75) return alertsStory(run, who)
    return monitorStory(run, who, random.chance(0.5))
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
      ...{
        seed,
        violations: ledger.violations,
        fingerprint: ledger.fingerprint(),
        events,
        requests,
      },
      ...{
        simulatedMs: scheduler.elapsed(),
        realMs: realNow() - startedAt,
        trace: ledger.trace,
        logged: world.logged,
      },
    }
  } finally {
    for (const process of [...service.processes]) service.kill(process)
    enterWorld(null)
    disk.close()
  }
}
