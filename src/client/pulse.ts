/** PULSE from the side of its owner, of the job that pings, and of anybody it is shared with. */
import type {
  PublicPulseStatus,
  PulseCapability,
  PulseSettings,
  PulseStatus,
} from '../pulse/schema.ts'
import { MayflyError } from './errors.ts'
import type { ApiRequest, Http } from './http.ts'
import { dataOf, endOf, follow } from './live.ts'

/**
 * A monitor, from its owner's side and from the job's. Every call rejects with a MayflyError:
 * `not found` where the monitor is gone or the token is not its own.
 *
 * ```ts
 * const monitor = mayfly.pulse(capability)
 * await monitor.update({ expectedIntervalSeconds: 3600, graceSeconds: 600 })
 * await monitor.ping()
 * ```
 */
export type PulseClient = {
  /** Records one heartbeat. Needs the ping token. */
  ping(): Promise<void>
  /** State, counters and settings. Needs the owner token, like all that follows. */
  status(): Promise<PulseStatus>
  /** Changes the settings that are given, and resolves to the status with them. */
  update(settings: PulseSettings): Promise<PulseStatus>
  /**
   * The status as it is, then again at each ping and change of state, `late` included; returns the
   * last state, or `destroyed`. A lost connection is made again and begins with the status.
   *
   * ```ts
   * for await (const { event, status } of monitor.stream()) console.log(event, status.state)
   * ```
   */
  stream(options?: { signal?: AbortSignal }): AsyncGenerator<PulseNews, string, undefined>
  /** Destroys the monitor, both of its capabilities and what it shares. */
  destroy(): Promise<void>
}

/**
 * What a stream tells: that it was pinged, or that its state or settings changed.
 *
 * ```ts
 * for await (const { event, status } of monitor.stream()) console.log(event, status.state)
 * ```
 */
export type PulseNews = { event: 'ping' | 'state'; status: PulseStatus }

/**
 * The part of a capability that somebody holds: a job that pings needs no owner token.
 *
 * ```ts
 * const job: PulseHolder = { publicId: 'pulse_…', pingToken: 'pulse_ping_…' }
 * ```
 */
export type PulseHolder = Pick<PulseCapability, 'publicId'> &
  Partial<Pick<PulseCapability, 'ownerToken' | 'pingToken'>>

/** Without the token that a call needs, the service refuses it like any stranger's. */
export function createPulseClient(
  http: Http,
  { publicId, ownerToken, pingToken }: PulseHolder,
): PulseClient {
  const id = encodeURIComponent(publicId)
  const path = `/api/pulse/${id}`
  const owner = ownerToken === undefined ? {} : { token: ownerToken }
  const job = pingToken === undefined ? {} : { token: pingToken }
  return {
    ping: () => http.perform({ method: 'POST', path: `/p/${id}`, ...job }),
    status: () => http.get<PulseStatus>({ path, ...owner }, 'state', 'expiresAt'),
    update(settings) {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(settings)
      const request: ApiRequest = { method: 'PATCH', path, headers, body, ...owner }
      return http.get<PulseStatus>(request, 'state', 'expiresAt')
    },
    async *stream({ signal } = {}) {
      const token = ownerToken ?? ''
      for await (const message of follow(http, {
        path: `${path}/stream`,
        token,
        after: null,
        signal,
      })) {
        if (message.event === 'end') return endOf(message)
        if (message.event !== 'ping' && message.event !== 'state') continue
        yield { event: message.event, status: dataOf(message) as PulseStatus }
      }
      throw new MayflyError('unexpected answer', 200)
    },
    destroy: () => http.perform({ method: 'DELETE', path, ...owner }),
  }
}

/** What is shared under this id. */
export function pulsePublicStatus(http: Http, publicStatusId: string): Promise<PublicPulseStatus> {
  const path = `/api/pulse/public/${encodeURIComponent(publicStatusId)}`
  return http.get<PublicPulseStatus>({ path }, 'state')
}
