/**
 * Pings: who may send them, and recording them. Those that reach one monitor while its last turn is stored are
 * recorded together: its row, which all of its senders change, changes once.
 */
import { createRemembered } from '../db/remembered.ts'
import type { Clock } from '../lib/clock.ts'
import { isId, isToken } from '../lib/ids.ts'
import { isTokenOf } from '../secrets/tokens.ts'
import type { PulseStore } from './store.ts'
import type { MonitorFacts, Turning } from './turning.ts'

/** Who may ping: the facts of a monitor that each ping needs, remembered, and its token. */
export function createJobs({ store, clock }: { store: Pick<PulseStore, 'monitor'>; clock: Clock }) {
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
    /** The monitor that this token pings, or null. */
    async pinged(publicId: string, token: string): Promise<MonitorFacts | null> {
      // The store is read only for a well-formed token, so that guesses cost little.
      if (!isToken('pulse_ping', token)) return null
      return find(publicId, token)
    },
    /** Reads the facts again next time: the monitor has refused a ping, or has another token. */
    forget: remembered.forget,
  }
}

/** Few enough that a unit of them is small. */
const PINGS_TOGETHER = 64

type Waiting = {
  time: number
  resolve: (isRecorded: boolean) => void
  reject: (error: Error) => void
}

/** Records a ping durably, or returns false if the monitor refuses it. A first use seals the delivery. */
export type Pinging = (job: MonitorFacts, time: number) => Promise<boolean>

export function createPinging(turning: Pick<Turning, 'beats'>): Pinging {
  /** By the facts that are remembered, which are others after the token was replaced. */
  const waiting = new Map<MonitorFacts, Waiting[]>()
  const busy = new Set<MonitorFacts>()

  async function recordAll(job: MonitorFacts): Promise<void> {
    busy.add(job)
    for (;;) {
      const all = waiting.get(job) ?? []
      waiting.delete(job)
      if (all.length === 0) break
      while (all.length > 0) await record(job, all.splice(0, PINGS_TOGETHER))
    }
    busy.delete(job)
  }

  async function record(job: MonitorFacts, together: Waiting[]): Promise<void> {
    const times = together.map(({ time }) => time)
    try {
      const isRecorded = await turning.beats(job, { kind: 'pings', times, rid: null, isRun: false })
      // Not all of them are left, or one came too late, but the monitor may accept some.
      if (!isRecorded && together.length > 1) for (const one of together) await record(job, [one])
      else for (const { resolve } of together) resolve(isRecorded)
    } catch (error) {
      for (const { reject } of together) reject(error as Error)
    }
  }

  return (job, time) =>
    new Promise((resolve, reject) => {
      const one = { time, resolve, reject }
      const together = waiting.get(job)
      if (together) together.push(one)
      else waiting.set(job, [one])
      if (!busy.has(job)) void recordAll(job)
    })
}
