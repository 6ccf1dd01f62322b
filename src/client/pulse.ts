/** The client of PULSE, for a monitor's owner, the job that pings, and readers of a shared status. */
import type { NewToken } from '../http/schemas.ts'
import type { PulseHistory, PulseHistoryQuery } from '../pulse/history-schema.ts'
import type {
  PublicPulseStatus,
  PulseCapability,
  PulseSchedule,
  PulseSettings,
  PulseStatus,
  RevealSwitch,
} from '../pulse/schema.ts'
import { createAlertsClient } from './alerts.ts'
import { MayflyError } from './errors.ts'
import { allPages, type CallOptions, callsAt, type Http, searchOf } from './http.ts'
import { dataOf, endOf, type Following, follow } from './live.ts'
import { within } from './wait.ts'

/**
 * What a monitor is set to when it is bought. What the service refuses of it is not paid.
 *
 * ```ts
 * const schedule = { cron: '0 3 * * *', timeZone: 'Europe/Berlin', graceSeconds: 900 }
 * const terms: PulseTerms = { settings: { name: 'backup', schedule } }
 * ```
 */
export type PulseTerms = { settings?: PulseSettings & { schedule?: PulseSchedule } }

/** Names a run by a UUID, where runs of a job overlap. Without it the job has one run at a time. */
export type PulseRun = CallOptions & { rid?: string }

/** An event of a monitor's stream: a ping, or a change of state or settings. */
export type PulseNews = { event: 'ping' | 'state'; status: PulseStatus }

/** The part of a capability that its holder has. A job that pings needs no owner token. */
export type PulseHolder = Pick<PulseCapability, 'publicId'> &
  Partial<Pick<PulseCapability, 'ownerToken' | 'pingToken'>>

/**
 * The client of a monitor, for its owner and for the job that pings. Every call rejects with a
 * MayflyError: `not found` if the monitor is gone or the token is wrong.
 *
 * ```ts
 * const monitor = mayfly.pulse(capability)
 * await monitor.update({ expectedIntervalSeconds: 3600, graceSeconds: 600 })
 * await monitor.ping()
 * ```
 */
export type PulseClient = ReturnType<typeof createPulseClient>

const STATUS = ['state', 'expiresAt'] as const

export function createPulseClient(http: Http, { publicId, ownerToken, pingToken }: PulseHolder) {
  const id = encodeURIComponent(publicId)
  const path = `/api/pulse/${id}`
  const calls = callsAt(http, path, ownerToken)
  const { read, change, remove } = calls
  // Sent again if its answer is lost: a signal that is recorded twice says the same.
  const send = (signal: string, { rid, ...options }: PulseRun = {}): Promise<void> => {
    const query = rid === undefined ? '' : `?rid=${encodeURIComponent(rid)}`
    const asked = { path: `/p/${id}${signal}${query}`, token: pingToken, ...options }
    return http.perform({ method: 'POST', ...asked, isRepeatable: true })
  }
  const history = (query: PulseHistoryQuery = {}, options?: CallOptions): Promise<PulseHistory> =>
    read(`/history${searchOf(query)}`, ['uptime', 'entries', 'nextCursor'], options)
  return {
    /** Records one heartbeat. Needs the ping token, like the three calls below. A lost one is sent again. */
    ping: (run?: PulseRun) => send('', run),
    /** Records that a run begins. It is no heartbeat, and costs one, like every signal. */
    start: (run?: PulseRun) => send('/start', run),
    /** Records that a run failed: the monitor is `late` until a run succeeds. */
    fail: (run?: PulseRun) => send('/fail', run),
    /**
     * Records the exit code of a run, 0 to 255. 0 is a heartbeat, any other code a failure.
     *
     * ```ts
     * const run = { rid: crypto.randomUUID() }
     * await monitor.start(run)
     * await monitor.exit(0, run)
     * ```
     */
    exit: (code: number, run?: PulseRun) => send(`/${code}`, run),
    /** State, counters and settings. Needs the owner token, like all calls below. */
    status: (options?: CallOptions) => read<PulseStatus>('', STATUS, options),
    /**
     * The status once its `stateChangedAt` is another than this one, or after `seconds` (1 to 30) as it is then.
     *
     * ```ts
     * const { state, stateChangedAt } = await monitor.status()
     * const later = await monitor.awaitState({ since: stateChangedAt })
     * ```
     */
    awaitState: ({
      since,
      seconds = 30,
      ...options
    }: CallOptions & { since?: string; seconds?: number } = {}) =>
      read<PulseStatus>(searchOf({ wait: seconds, since }), STATUS, options),
    /** Changes the given settings, and resolves to the new status. */
    update: (settings: PulseSettings, options?: CallOptions) =>
      change<PulseStatus>(['PATCH', ''], STATUS, { json: settings, ...options }),
    /**
     * Yields the current status, then the new one at each ping and change of state, `late` included.
     * Returns the last state, or `destroyed`. Each reconnection starts with the current status.
     *
     * ```ts
     * for await (const { event, status } of monitor.stream()) console.log(event, status.state)
     * ```
     */
    async *stream({
      onConnection,
      ...options
    }: CallOptions & Pick<Following, 'onConnection'> = {}): AsyncGenerator<
      PulseNews,
      string,
      undefined
    > {
      for await (const message of follow(http, {
        path: `${path}/stream`,
        token: ownerToken ?? '',
        after: null,
        signal: within(options),
        onConnection,
      })) {
        if (message.event === 'end') return endOf(message)
        if (message.event !== 'ping' && message.event !== 'state') continue
        yield { event: message.event, status: dataOf(message) as PulseStatus }
      }
      throw new MayflyError('unexpected answer', 200)
    },
    /** A page of the history of its whole life, newest first, and its uptime. */
    history,
    /**
     * Every entry of the history, newest first. Loads page after page.
     *
     * ```ts
     * for await (const { type, at } of monitor.historyEntries()) console.log(at, type)
     * ```
     */
    historyEntries: (query: PulseHistoryQuery = {}, options?: CallOptions) =>
      allPages(query, 'entries', (next) => history(next, options)),
    ...createAlertsClient(calls, '/alerts'),
    /**
     * Makes another token. Save it before anything else: if the answer is lost, rotate again. A new ping token replaces
     * the one before at once, and the deadline counts from now, so that there is time to give it to the job. A new owner
     * token does so with its first use.
     */
    rotateToken: (kind: 'owner' | 'ping', options?: CallOptions) =>
      change<NewToken>(['POST', `/tokens/${kind}`], ['token'], options),
    /** The switch that binds a whisper to the monitor's silence (`revealWhen`); made with the first call. */
    makeSwitch: (options?: CallOptions) =>
      change<RevealSwitch>(['POST', '/switch'], ['switchId'], options),
    /** Retires the switch: nothing more can be bound to it. What is bound stays bound. */
    retireSwitch: (options?: CallOptions) => remove('/switch', options),
    /** Expects pings at the times of a crontab line instead of an interval. Resolves to what was set. */
    setSchedule: (schedule: PulseSchedule, options?: CallOptions) =>
      change<PulseSchedule>(['PUT', '/schedule'], ['cron'], { json: schedule, ...options }),
    /** Returns to the interval. Rejects with `not found` if there is no schedule. */
    deleteSchedule: (options?: CallOptions) => remove('/schedule', options),
    /** Destroys the monitor, both of its capabilities and its shared status. */
    destroy: (options?: CallOptions) => remove('', options),
  }
}

/** The shared status with this id. */
export const pulsePublicStatus = (
  http: Http,
  publicStatusId: string,
  options?: CallOptions,
): Promise<PublicPulseStatus> =>
  callsAt(http, `/api/pulse/public/${encodeURIComponent(publicStatusId)}`).read(
    '',
    ['state'],
    options,
  )
