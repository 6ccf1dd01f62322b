/** What happens to the service: kills, restarts, loss of power, lost answers, and clocks that jump. */
import { type Backup, restoreBackup, takeBackup } from './backup.ts'
import type { Run } from './run-context.ts'
import type { Random } from './world/random.ts'
import type { Process } from './world/world.ts'

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
  /** When a backup is taken, and when it is restored, in milliseconds. */
  restore: { takenAt: number; restoredAt: number } | null
}

/** GATE costs a run more than another product: it has two more servers. */
const GATE_EVERY = 3

export function weatherOf(run: Pick<Run, 'world'>, seed: number): Weather {
  const { random } = run.world.scheduler
  const hasGate = seed % GATE_EVERY === 0
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
    hasGate,
    // What GATE's projects keep is lost with no backup of ours.
    restore: random.chance(0.2) && !hasGate ? restoreOf(random) : null,
  }
}

function restoreOf(random: Random): Weather['restore'] {
  const takenAt = random.next() * 60_000
  return { takenAt, restoredAt: takenAt + random.next() * 30_000 }
}

export async function storm(run: Run, weather: Weather): Promise<void> {
  const { world, service, ledger, settings } = run
  const { scheduler, disk, node } = world
  const { random } = scheduler
  Object.assign(service, { losing: weather.losing })
  Object.assign(world.outside, { losing: weather.losing, stalling: weather.nodeStalling })
  disk.failing = weather.diskFailing
  node.failing = weather.nodeFailing
  node.stalling = weather.nodeStalling
  node.telling = weather.telling
  node.forgetting = weather.nodeForgetting
  node.lagging = weather.nodeLagging
  let backup: Backup | null = null
  if (weather.restore) {
    scheduler.after(weather.restore.takenAt, () => {
      ledger.note('a backup')
      backup = takeBackup(run)
    })
  }
  while (run.isStormy()) {
    await scheduler.sleep(-Math.log(1 - random.next()) * weather.disasterEveryMs)
    if (!run.isStormy()) break
    await disaster()
    if (backup && scheduler.elapsed() >= (weather.restore?.restoredAt ?? 0)) {
      await restore(backup)
      backup = null
    }
  }
  if (backup) await restore(backup)

  async function restore(taken: Backup): Promise<void> {
    ledger.note('the backup is restored')
    if (random.chance(0.5)) await Promise.all(service.processes.map(service.stop))
    for (const process of [...service.processes]) service.kill(process)
    await restoreBackup(run, taken)
    await back()
  }

  async function disaster(): Promise<void> {
    const draw = random.next()
    if (draw < 0.08) return restartNode()
    if (draw < 0.42) return kill()
    if (draw < 0.55) return restart()
    if (draw < 0.6) return changeSecret()
    if (draw < 0.7) return changePlans()
    if (draw < 0.75) return refuse()
    if (draw < 0.84) return losePower()
    if (draw < 0.92) return outage()
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
    await back()
  }

  async function restart(): Promise<void> {
    const process = anyProcess()
    if (!process) return
    // Other processes may still have the address of before.
    if (random.chance(0.2)) settings.changeAddress()
    ledger.note(`restart ${process.name}`)
    await service.stop(process)
    await back()
  }

  /** All processes share one set of secrets. */
  async function changeSecret(): Promise<void> {
    ledger.note('a new secret')
    settings.changeSecret()
    await Promise.all(service.processes.map(service.stop))
    await back()
  }

  /** Each process gets its signal at another time. Some signals come while the file is being written. */
  async function changePlans(): Promise<void> {
    ledger.note(settings.changePlans())
    for (const process of service.processes) {
      await scheduler.sleep(random.next() * 2_000)
      if (random.chance(0.2)) service.reload(process, null)
      service.reload(process, settings.catalog())
    }
  }

  /** Whatever is to be provisioned is refused. What is paid meanwhile is owed. */
  async function refuse(): Promise<void> {
    ledger.note('nothing can be provisioned')
    disk.isRefusing = true
    await scheduler.sleep(2_000 + random.next() * 10_000)
    disk.isRefusing = false
  }

  /** The machine goes down with everything that no flush has written. */
  async function losePower(): Promise<void> {
    ledger.note('the power is lost')
    for (const process of [...service.processes]) service.kill(process)
    disk.cutPower()
    await scheduler.sleep(random.next() * 5_000)
    await back()
  }

  /** Nobody is up for longer than a monitor's interval and grace. */
  async function outage(): Promise<void> {
    const ms = 60_000 + random.next() * 120_000
    ledger.note(`an outage of ${ms.toFixed(0)} ms`)
    for (const process of [...service.processes]) service.kill(process)
    await scheduler.sleep(ms)
    await back()
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

  function back(): Promise<void> {
    return up(run, weather)
  }
}

/** Starts what is missing. */
export async function up(
  { world, service, ledger, settings }: Run,
  { processes }: Pick<Weather, 'processes'>,
): Promise<void> {
  while (service.processes.length < processes) {
    const started = service.start(settings.environment(), settings.catalog())
    await started.catch((error: unknown) => {
      ledger.note(`a start failed: ${String(error)}`)
      return world.scheduler.sleep(500)
    })
  }
}
