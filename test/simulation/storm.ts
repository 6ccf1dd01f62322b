/** What happens to the service: kills, restarts, loss of power, lost answers, and clocks that jump. */
import type { Run } from './run-context.ts'
import type { Process } from './world/world.ts'

export const SECRETS = { current: '11'.repeat(32), next: '22'.repeat(32) }

export type Weather = {
  processes: number
  losing: number
  diskFailing: number
  nodeFailing: number
  nodeStalling: number
  telling: number
  nodeForgetting: number
  nodeLagging: number
  /** How often only a part of a payment arrives. */
  partial: number
  /** Milliseconds between two disasters, on average. */
  disasterEveryMs: number
  hasJumps: boolean
  /** How far the clocks of processes are off, and those of the node and of wallets. */
  clocksWithinMs: number
  nodeClocksWithinMs: number
  hasGate: boolean
}

/** GATE costs a run more than another product: it has two more servers. */
const GATE_EVERY = 3

export function weatherOf(run: Pick<Run, 'world'>, seed: number): Weather {
  const { random } = run.world.scheduler
  return {
    processes: random.pick([1, 1, 2, 3]),
    losing: random.pick([0, 0.02, 0.1, 0.25]),
    diskFailing: random.pick([0, 0, 0.01, 0.05]),
    nodeFailing: random.pick([0, 0.05, 0.3]),
    nodeStalling: random.pick([0, 0.01, 0.15]),
    telling: random.pick([0, 0.5, 1]),
    nodeForgetting: random.pick([0, 0.05, 0.2]),
    nodeLagging: random.pick([0, 0.3, 1]),
    partial: random.pick([0, 0.1]),
    disasterEveryMs: random.pick([4_000, 15_000, 60_000]),
    hasJumps: random.chance(0.3),
    // Two that are off in two ways are a second apart, which docs/instances.md allows.
    clocksWithinMs: random.pick([0, 50, 500]),
    // The service accepts two minutes.
    nodeClocksWithinMs: random.pick([0, 500, 60_000]),
    hasGate: seed % GATE_EVERY === 0,
  }
}

const BASE = {
  MAYFLY_LIGHTNING_URL: 'lnd+https://127.0.0.1:1?macaroon=/none&cert=/none',
  MAYFLY_RATE_LIMITS: 'off',
  MAYFLY_BASE_URL: 'http://127.0.0.1:8402',
  MAYFLY_DATABASE_URL: 'sqlite:/none/mayfly.db',
  MAYFLY_QUOTE_SECONDS: '60',
}

/** The settings of a process that starts now. An operator changes the secret in two steps, as docs say. */
export function environmentOf(
  { hasGate }: Pick<Weather, 'hasGate'>,
  isRotated: boolean,
): Record<string, string> {
  const { current, next } = SECRETS
  const gate = hasGate ? { MAYFLY_GATE: 'on' } : {}
  return { ...BASE, ...gate, MAYFLY_SECRET: isRotated ? `${next},${current}` : current }
}

export async function storm(run: Run, weather: Weather): Promise<void> {
  const { world, service, ledger } = run
  const { scheduler, disk, node } = world
  const { random } = scheduler
  let isRotated = false
  Object.assign(service, { losing: weather.losing })
  Object.assign(world.outside, { losing: weather.losing, stalling: weather.nodeStalling })
  disk.failing = weather.diskFailing
  node.failing = weather.nodeFailing
  node.stalling = weather.nodeStalling
  node.telling = weather.telling
  node.forgetting = weather.nodeForgetting
  node.lagging = weather.nodeLagging
  while (run.isStormy()) {
    await scheduler.sleep(-Math.log(1 - random.next()) * weather.disasterEveryMs)
    if (!run.isStormy()) break
    await disaster()
  }

  async function disaster(): Promise<void> {
    const draw = random.next()
    if (draw < 0.1) return restartNode()
    if (draw < 0.5) return kill()
    if (draw < 0.65) return restart()
    if (draw < 0.8) return losePower()
    if (draw < 0.9) return outage()
    if (weather.hasJumps) return jump()
  }

  function anyProcess(): Process | null {
    return service.processes.length > 0 ? random.pick(service.processes) : null
  }

  async function kill(): Promise<void> {
    const process = anyProcess()
    if (!process) return
    ledger.note(`kill ${process.name}`)
    service.kill(process)
    await scheduler.sleep(random.next() * 3_000)
    await up()
  }

  async function restart(): Promise<void> {
    const process = anyProcess()
    if (!process) return
    // All processes share one set of secrets before the older one is dropped.
    if (weather.processes === 1 && random.chance(0.3)) isRotated = true
    ledger.note(`restart ${process.name}${isRotated ? ' with a new secret' : ''}`)
    await service.stop(process)
    await up()
  }

  /** The machine goes down with everything that no flush has written. */
  async function losePower(): Promise<void> {
    ledger.note('the power is lost')
    for (const process of [...service.processes]) service.kill(process)
    disk.cutPower()
    await scheduler.sleep(random.next() * 5_000)
    await up()
  }

  /** Nobody is up for longer than a monitor's interval and grace. */
  async function outage(): Promise<void> {
    const ms = 60_000 + random.next() * 120_000
    ledger.note(`an outage of ${ms.toFixed(0)} ms`)
    for (const process of [...service.processes]) service.kill(process)
    await scheduler.sleep(ms)
    await up()
  }

  /** It forgets who has subscribed, and tells nobody of what is settled meanwhile. */
  function restartNode(): void {
    const ms = random.next() * 15_000
    ledger.note(`the node restarts, and is away for ${ms.toFixed(0)} ms`)
    node.restart(ms)
  }

  async function jump(): Promise<void> {
    const ms = (random.chance(0.5) ? 1 : -1) * random.next() * 600_000
    ledger.note(`the clock jumps by ${ms.toFixed(0)} ms`)
    scheduler.jump(ms)
  }

  async function up(): Promise<void> {
    while (service.processes.length < weather.processes) {
      await service.start(environmentOf(weather, isRotated)).catch((error: unknown) => {
        ledger.note(`a start failed: ${String(error)}`)
        return scheduler.sleep(500)
      })
    }
  }
}
