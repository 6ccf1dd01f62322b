/**
 * Limits concurrent calls to one provider, and pauses calls to one that is down. cockatiel's bulkhead
 * and breaker do not fit: its queue keeps aborted callers, and its pauses use the wall clock.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import { LnurlError } from '../protocol/lnurl.ts'

/** LNURL servers are small. More concurrent calls would look like an attack. */
const MAX_CONCURRENT_CALLS = 4
/** Further callers would only time out in the queue. */
const MAX_WAITING = 32
/** After this many consecutive calls without an answer, calls to the server pause. */
const MAX_FAILURES = 5
const PAUSE_MS = 30_000
/** Hosts whose failures are remembered. A forgotten host starts without failures. */
const MAX_HOSTS = 10_000

export type HostSlots = {
  /**
   * Runs `work` when the host has a slot, unless `signal` ends the wait.
   * @throws LnurlError if the host is paused or too many calls wait.
   */
  use<T>(host: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

type Host = { running: number; waiting: (() => void)[]; failures: number; pausedUntil: number }

/** @param isOutage tells whether an error means that the server did not answer. */
export function createHostSlots(clock: Clock, isOutage: (error: unknown) => boolean): HostSlots {
  const hosts = new LRUCache<string, Host>({ maxSize: MAX_HOSTS, sizeCalculation: () => 1 })

  async function enter(host: Host, signal: AbortSignal): Promise<void> {
    if (host.running < MAX_CONCURRENT_CALLS) {
      host.running++
      return
    }
    if (host.waiting.length >= MAX_WAITING) throw new LnurlError('the provider is too busy')
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
    // The slot passes to the next caller.
    const next = host.waiting.shift()
    if (next) next()
    else host.running--
  }

  return {
    async use(name, signal, work) {
      const host = hosts.get(name) ?? { running: 0, waiting: [], failures: 0, pausedUntil: 0 }
      hosts.set(name, host)
      if (clock.now() < host.pausedUntil) throw new LnurlError('the provider does not answer')
      await enter(host, signal)
      try {
        const result = await work()
        host.failures = 0
        return result
      } catch (error) {
        if (isOutage(error)) host.failures++
        else host.failures = 0
        // The count is not reset, so one failure after the pause starts the next pause.
        if (host.failures >= MAX_FAILURES) host.pausedUntil = clock.now() + PAUSE_MS
        throw error
      } finally {
        leave(host)
      }
    },
  }
}
