/** Fairness between strangers' servers: few calls to one at once, none to one that is down. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import { LnurlError } from '../protocol/lnurl.ts'

/** LNURL servers are small; more calls at once would look like an attack. */
const CALLS_AT_ONCE = 4
/** Whoever comes after these would only run into the time limit. */
const WAITING_MOST = 32
/** So many calls in a row without an answer, and the server is left alone for a while. */
const FAILURES_MOST = 5
const REST_MS = 30_000
/** Hosts remembered; one that falls out starts with a clean record. */
const HOSTS_MOST = 10_000

export type HostSlots = {
  /**
   * Runs `work` when the host has a slot, unless `signal` ends the wait.
   * @throws LnurlError where the host is at rest or too many wait already.
   */
  use<T>(host: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

type Host = { running: number; waiting: (() => void)[]; failures: number; restUntil: number }

/** @param isOutage which errors mean that the server did not answer at all. */
export function createHostSlots(clock: Clock, isOutage: (error: unknown) => boolean): HostSlots {
  const hosts = new LRUCache<string, Host>({ max: HOSTS_MOST })

  async function enter(host: Host, signal: AbortSignal): Promise<void> {
    if (host.running < CALLS_AT_ONCE) {
      host.running++
      return
    }
    if (host.waiting.length >= WAITING_MOST) throw new LnurlError('the provider is too busy')
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = (): void => {
        host.waiting.splice(host.waiting.indexOf(go), 1)
        reject(signal.reason)
      }
      host.waiting.push(go)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  function leave(host: Host): void {
    // The slot goes over to the one who waits.
    const next = host.waiting.shift()
    if (next) next()
    else host.running--
  }

  return {
    async use(name, signal, work) {
      const host = hosts.get(name) ?? { running: 0, waiting: [], failures: 0, restUntil: 0 }
      hosts.set(name, host)
      if (clock.now() < host.restUntil) throw new LnurlError('the provider does not answer')
      await enter(host, signal)
      try {
        const result = await work()
        host.failures = 0
        return result
      } catch (error) {
        if (isOutage(error)) host.failures++
        else host.failures = 0
        // After the rest one more failure is enough.
        if (host.failures >= FAILURES_MOST) host.restUntil = clock.now() + REST_MS
        throw error
      } finally {
        leave(host)
      }
    },
  }
}
