/**
 * The servers of strangers that a service calls: receivers of alerts, LNURL servers. Each host of a run has a
 * handler. Requests and answers are lost, and some take so long that the caller gives up.
 */
import { world } from './world.ts'

/** A request as a server gets it. Names of headers are in lower case. */
export type Received = {
  url: URL
  method: string
  headers: Record<string, string>
  body: string
  /** Aborts when the caller hangs up. */
  signal: AbortSignal
}

export type Reply = { status: number; headers?: Record<string, string>; body?: string }

export type Outside = {
  /** By `host` of the URL. What is not here cannot be resolved. */
  hosts: Map<string, (received: Received) => Reply | Promise<Reply>>
  /** How often a request or an answer is lost, from 0 to 1. */
  losing: number
  /** How often an answer takes longer than the service waits. */
  stalling: number
}

export const createOutside = (): Outside => ({ hosts: new Map(), losing: 0, stalling: 0 })

/** Longer than the service waits for anybody. */
const STALLED_MS = 30_000

const failed = (code: string): Error => Object.assign(new Error(code), { code })

/**
 * Sends a request to a host of the run. Resolves in the process that asks.
 * @throws with the code of the failure, as undici does.
 */
export function call(received: Received): Promise<Required<Reply>> {
  const { scheduler, outside } = world()
  const { random } = scheduler
  const process = scheduler.owner()
  return new Promise((resolve, reject) => {
    const later = (work: () => void): void => {
      scheduler.after(random.next() * 100, work, process)
    }
    const isAnswerLost = random.chance(outside.losing)
    const isStalled = random.chance(outside.stalling)
    async function arrive(): Promise<void> {
      const handle = outside.hosts.get(received.url.host)
      if (!handle) return later(() => reject(failed('ENOTFOUND')))
      const { status, headers = {}, body = '' } = await handle(received)
      if (isAnswerLost) return later(() => reject(failed('ECONNRESET')))
      if (isStalled) await scheduler.sleep(STALLED_MS)
      later(() => resolve({ status, headers, body }))
    }
    if (random.chance(outside.losing)) return later(() => reject(failed('ECONNREFUSED')))
    // What was sent arrives, also if its sender dies meanwhile.
    scheduler.after(random.next() * 100, () => void arrive(), null)
  })
}
