/** What happens to the service: kills, restarts, loss of power, changes by its operator, and clocks that jump. */
import { type Backup, restoreBackup, takeBackup } from './backup.ts'
import type { Run } from './run-context.ts'
import { anyDisaster, type Disaster, type Weather } from './weather.ts'
import type { Process } from './world/world.ts'

/** A disaster that finds nothing under way strikes all the same. */
const LONGEST_AIM_MS = 10_000

/** @param told resolves when no client is left. */
export async function storm(run: Run, weather: Weather, told: Promise<void>): Promise<void> {
  const { world, service, ledger, settings } = run
  const { scheduler, disk, node } = world
  const { random } = scheduler
  let backup: Backup | null = null
  if (weather.restore) {
    scheduler.after(weather.restore.takenAt, () => {
      ledger.note('a backup')
      backup = takeBackup(run)
    })
  }
  while (run.isStormy()) {
    const what = anyDisaster(random, weather)
    await Promise.race([aim(what), told])
    if (!run.isStormy()) break
    await strike(what)
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

  /**
   * Waits for the next disaster. Most strike while a request is under way, or when an answer has just come, and the
   * power is lost when not all that was answered may be on the disk.
   */
  async function aim(what: Disaster | null): Promise<void> {
    await scheduler.sleep(-Math.log(1 - random.next()) * weather.disasterEveryMs)
    if (!random.chance(weather.aiming)) return
    if (what === 'loss of power') {
      await Promise.race([run.exchanged('early'), scheduler.sleep(LONGEST_AIM_MS)])
      return
    }
    const isAtOnce = random.chance(0.3)
    const exchange = run.exchanged(isAtOnce ? 'answer' : 'request')
    await Promise.race([exchange, scheduler.sleep(LONGEST_AIM_MS)])
    await scheduler.sleep(random.next() * (isAtOnce ? 2 : 40))
  }

  async function strike(what: Disaster | null): Promise<void> {
    switch (what) {
      case 'the node restarts':
        return restartNode()
      case 'kill':
        return kill()
      case 'restart':
        return restart()
      case 'a new secret':
        return changeSecret()
      case 'another address':
        return changeAddress()
      case 'other plans':
        return changePlans()
      case 'refusal':
        return refuse()
      case 'loss of power':
        return losePower()
      case 'outage':
        return outage()
      case 'jump':
        return jump()
      case null:
        return
    }
  }

  function anyProcess(): Process | null {
    return service.processes.length > 0 ? random.pick(service.processes) : null
  }

  async function kill(): Promise<void> {
    const process = anyProcess()
    if (!process) return
    if (random.chance(0.5)) await nextStored(process)
    ledger.note(`kill ${process.name}`)
    service.kill(process)
    await scheduler.sleep(random.next() * 3_000)
    await back()
  }

  /** Between two units of an operation: what the first one did is stored, and nothing begins the second. */
  function nextStored(process: Process): Promise<void> {
    const stored = new Promise<void>((resolve) => {
      disk.onStored = (by) => {
        if (by !== process) return
        disk.onStored = () => undefined
        service.kill(process)
        resolve()
      }
    })
    return Promise.race([stored, scheduler.sleep(LONGEST_AIM_MS)])
  }

  async function restart(): Promise<void> {
    const process = anyProcess()
    if (!process) return
    ledger.note(`restart ${process.name}`)
    await service.stop(process)
    await back()
  }

  /** One process gets it after the other, while buyers have challenges of both. */
  async function changeAddress(): Promise<void> {
    ledger.note(`another address: ${settings.changeAddress()}`)
    for (const process of [...service.processes]) {
      await service.stop(process)
      await back()
      await scheduler.sleep(random.next() * 5_000)
    }
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

  function jump(): void {
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
