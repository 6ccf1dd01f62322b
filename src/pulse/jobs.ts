/** Who may ping: the facts of a monitor that each ping needs, remembered, and its token. */
import { createRemembered } from '../db/remembered.ts'
import type { Clock } from '../lib/clock.ts'
import { isId, isToken } from '../lib/ids.ts'
import { isTokenOf } from '../secrets/tokens.ts'
import type { PulseStore } from './store.ts'

/**
 * The facts of a monitor that change only with a new ping token, so that they can be remembered. What records a ping
 * asks the store whether the token is still the monitor's: another instance may have replaced it.
 */
export type MonitorFacts = { publicId: string; pingTokenHash: Uint8Array }

export type Jobs = {
  /** The monitor that this token pings, or null. */
  pinged(publicId: string, token: string): Promise<MonitorFacts | null>
  /** Reads the facts again next time: the monitor has refused a ping, or has another token. */
  forget(publicId: string): void
}

export function createJobs({
  store,
  clock,
}: {
  store: Pick<PulseStore, 'monitor'>
  clock: Clock
}): Jobs {
  const remembered = createRemembered(openMonitor)

  async function openMonitor(publicId: string): Promise<MonitorFacts | null> {
    if (!isId('pulse', publicId)) return null
    const monitor = await store.monitor(publicId)
    if (!monitor || monitor.accepted_heartbeat_count >= monitor.heartbeat_limit) return null
    if (monitor.expires_at <= clock.now()) return null
    return { publicId, pingTokenHash: monitor.ping_token_hash }
  }

  async function find(publicId: string, token: string): Promise<MonitorFacts | null> {
    const isIts = ({ pingTokenHash }: MonitorFacts): boolean =>
      isTokenOf('pulse_ping', token, pingTokenHash)
    const known = await remembered.of(publicId)
    if (!known || isIts(known)) return known
    // The token may be newer than what is remembered.
    const current = await openMonitor(publicId)
    if (!current || !isIts(current)) return null
    remembered.forget(publicId)
    return remembered.of(publicId)
  }

  return {
    async pinged(publicId, token) {
      // The store is read only for a well-formed token, so that guesses cost little.
      if (!isToken('pulse_ping', token)) return null
      return find(publicId, token)
    },
    forget: remembered.forget,
  }
}
