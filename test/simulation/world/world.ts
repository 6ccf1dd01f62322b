/** The world of the run that is under way in this thread. What replaces a part of Node asks for it. */
import type { App } from '../../../src/http/app.ts'
import type { Disk } from './disk.ts'
import type { LightningNetwork } from './node.ts'
import type { Outside } from './outbound.ts'
import type { Owner, Scheduler } from './scheduler.ts'

/** A process of the service. It lives from a start to a stop or a kill. */
export type Process = Owner & {
  name: string
  app: App | null
  /** Called when the process dies, for requests that it will not answer. */
  onDeath: Set<() => void>
}

export type World = {
  scheduler: Scheduler
  disk: Disk
  node: LightningNetwork
  /** The servers of strangers that the service calls. */
  outside: Outside
  /** Wakes the listeners of a topic in all other processes. */
  hints: Map<Process, (topic: string) => void>
  /** The lines that the processes have logged. */
  logged: string[]
}

let current: World | null = null

export function enterWorld(world: World | null): void {
  current = world
}

export function world(): World {
  if (!current) throw new Error('no simulation is running')
  return current
}

export const isSimulating = (): boolean => current !== null

/** The process whose code is running. */
export function thisProcess(): Process {
  const owner = world().scheduler.owner()
  if (!owner) throw new Error('no process of the service is running')
  return owner as Process
}
