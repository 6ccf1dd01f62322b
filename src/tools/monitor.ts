/** The tools for a monitor that exists, and what a monitor is set to. */
import { URL_FORMATS } from '../lib/alert-formats.ts'
import { isObject } from '../lib/json.ts'
import { Type } from '../lib/json-schema.ts'
import {
  GRACE_SECONDS,
  INTERVAL_SECONDS,
  LENGTHS,
  SCHEDULE_GRACE_SECONDS,
} from '../lib/monitor-bounds.ts'
import { Refusal } from './answers.ts'
import { said } from './strangers.ts'
import {
  type Context,
  Count,
  DateTimeOrNull,
  type Held,
  type HeldTool,
  objectOf,
  pick,
  type Way,
} from './tool.ts'

const MAX_LABEL_CHARS = 120

/** What a monitor can be set to, when it is bought and later. */
export const monitorSettings = {
  label: Type.String({
    maxLength: LENGTHS.name,
    description: 'What alerts and the shared status call it',
  }),
  intervalSeconds: Type.Integer({
    ...INTERVAL_SECONDS,
    description: 'Seconds between two pings. Or give cron',
  }),
  cron: Type.String({
    maxLength: LENGTHS.cron,
    description: 'When the job runs, such as 0 3 * * *',
  }),
  timeZone: Type.String({
    maxLength: LENGTHS.timeZone,
    default: 'UTC',
    description: 'Of cron, an IANA name such as Europe/Berlin',
  }),
  graceSeconds: Type.Integer({
    ...GRACE_SECONDS,
    description: `How late a ping can be; ${SCHEDULE_GRACE_SECONDS} by default with cron`,
  }),
  publicStatus: Type.Boolean({ description: 'Shares label and state at an address' }),
}

const alerts = (way: Way) => {
  const url = Type.String({ maxLength: 2048, description: 'An https URL of a public host' })
  const format = Type.Enum(URL_FORMATS, { description: 'Of the url' })
  const inbox = Type.String({
    maxLength: 64,
    description: way === 'local' ? 'The name of a saved inbox' : 'The id of an inbox',
  })
  const token = way === 'local' ? {} : { ingestToken: Type.String({ maxLength: 128 }) }
  return Type.Array(objectOf({ url, format, inbox, ...token }, []), {
    maxItems: 3,
    description: 'Who is alerted when it is late: urls or inboxes, in place of those before',
  })
}

/** The settings of a call as the service takes them when a monitor is bought. @throws Refusal for what excludes each other. */
export function settingsIn(args: Record<string, unknown>): Record<string, unknown> {
  const { label, intervalSeconds, cron, timeZone, graceSeconds, publicStatus } = args
  if (cron !== undefined && intervalSeconds !== undefined) {
    throw new Refusal('Give either intervalSeconds or cron. Nothing was done.')
  }
  if (cron === undefined && timeZone !== undefined) {
    throw new Refusal('timeZone is of cron, which is missing. Nothing was done.')
  }
  const schedule = {
    cron,
    timeZone: timeZone ?? 'UTC',
    graceSeconds: graceSeconds ?? SCHEDULE_GRACE_SECONDS,
  }
  const given = {
    name: label,
    publicStatusEnabled: publicStatus,
    ...(cron === undefined
      ? { expectedIntervalSeconds: intervalSeconds, graceSeconds }
      : { schedule }),
  }
  return pick(given, Object.keys(given))
}

/** Sets what a call says. Each part can be set again. @throws Refusal */
async function applySettings(monitor: Held, args: Record<string, unknown>): Promise<void> {
  const { path } = monitor
  let { schedule, ...settings } = settingsIn(args)
  const { schedule: before } = await monitor.json('GET', path)
  const { expectedIntervalSeconds, graceSeconds, ...others } = settings
  if (isObject(before) && graceSeconds !== undefined && expectedIntervalSeconds === undefined) {
    // The grace alone is that of the schedule, if the monitor goes by one.
    schedule = { ...before, graceSeconds }
    settings = others
  }
  if (schedule !== undefined) await monitor.json('PUT', `${path}/schedule`, schedule)
  if (Object.keys(settings).length > 0) await monitor.json('PATCH', path, settings)
  if (isObject(before) && expectedIntervalSeconds !== undefined) {
    await monitor.done('DELETE', `${path}/schedule`)
  }
}

export const CONFIGURE_MONITOR: HeldTool = {
  name: 'configure_monitor',
  title: 'Set up a monitor',
  description: () =>
    'Sets when a monitor expects its job, and who is alerted when it is late. Changes what is given and nothing else. New destinations are tested at once.',
  hints: { repeatable: true, open: true },
  about: { pulse: 'owner' },
  input: (way) => ({ ...monitorSettings, alerts: alerts(way) }),
  output: Type.Object({
    publicId: Type.String(),
    expects: Type.String(),
    alerts: Type.Array(
      Type.Object({
        to: Type.String(),
        format: Type.String(),
        state: Type.String({ description: 'untested: gets no alerts yet' }),
      }),
    ),
    nextExpectedAt: DateTimeOrNull,
    statusUrl: Type.Optional(Type.String()),
    next: Type.Optional(Type.String()),
  }),
  async run({ args, secrets, held: monitor }) {
    const wanted = Array.isArray(args.alerts) ? args.alerts.filter(isObject) : null
    const destinations = wanted?.map((one) => destinationOf(one, secrets))
    const urls = (wanted ?? []).flatMap(({ url }) => (url === undefined ? [] : [said(url, 2048)]))
    if (urls.length > 0) {
      // A webhook can talk a model into this. Alerts carry what the monitor is called and when it runs.
      await secrets.confirm(
        `Send the alerts of "${monitor.label}" to ${urls.join(' and ')}?`,
        monitor,
        `Only the user can let alerts go to a url, and this host cannot ask. The user does it with: mayfly alerts ${monitor.label} --ntfy URL (or another format).`,
      )
    }
    await applySettings(monitor, args)
    const { path } = monitor
    if (destinations !== undefined) await monitor.json('PUT', `${path}/alerts`, { destinations })
    const status = await monitor.json('GET', path)
    const told = await monitor.json('GET', `${path}/alerts`)
    const list = Array.isArray(told.destinations) ? told.destinations.filter(isObject) : []
    const shown = list.slice(0, 3).map(({ host, format, state }) => ({
      to: said(host),
      format: said(format),
      state: said(state),
    }))
    const isUntested = shown.some(({ state }) => state !== 'active')
    return {
      value: {
        publicId: monitor.publicId,
        expects: expectedBy(status),
        alerts: shown,
        nextExpectedAt: said(status.nextExpectedAt) || null,
        ...(status.publicStatusEnabled === true ? { statusUrl: shared(monitor, status) } : {}),
        ...(shown.length === 0 ? { next: 'Nobody is alerted when it is late: set alerts.' } : {}),
        ...(isUntested ? { next: UNTESTED } : {}),
      },
    }
  },
}

const UNTESTED =
  'What is untested did not answer its test, and gets no alerts. Set it again to test it.'

function destinationOf(one: Record<string, unknown>, secrets: Context['secrets']): object {
  const { url, format, inbox, ingestToken } = one
  if ((url === undefined) === (inbox === undefined)) {
    throw new Refusal('Each of alerts has either a url or an inbox. Nothing was changed.')
  }
  if (url !== undefined) return pick(one, ['url', 'format'])
  if (format !== undefined) throw new Refusal('format is of a url. Nothing was changed.')
  return secrets.alertInbox({
    inbox: String(inbox),
    ...(ingestToken === undefined ? {} : { ingestToken: String(ingestToken) }),
  })
}

const shared = ({ origin }: Held, { publicStatusId }: Record<string, unknown>): string =>
  `${origin}/status/${said(publicStatusId)}`

function expectedBy(status: Record<string, unknown>): string {
  const { schedule, expectedIntervalSeconds } = status
  const { cron, timeZone, graceSeconds } = isObject(schedule) ? schedule : status
  const when = isObject(schedule)
    ? `at ${said(cron)} (${said(timeZone)})`
    : `every ${Number(expectedIntervalSeconds)} s`
  return `a ping ${when}, at most ${Number(graceSeconds)} s late`
}

const STATES = ['waiting', 'operational', 'late', 'exhausted', 'expired'] as const
const TIMES = ['lastPingAt', 'nextExpectedAt', 'lateAt', 'stateChangedAt', 'expiresAt'] as const

export const MONITOR_STATUS: HeldTool = {
  name: 'monitor_status',
  title: 'Look at a monitor',
  description: () =>
    'The state of a monitor: waiting for its first ping, operational, late, exhausted or expired, with its times and what is left.',
  hints: { reads: true, repeatable: true },
  about: { pulse: 'owner' },
  input: () => ({}),
  output: Type.Object({
    publicId: Type.String(),
    planId: Type.String(),
    state: Type.Enum(STATES),
    label: Type.String(),
    expects: Type.String(),
    remainingHeartbeats: Count,
    ...Object.fromEntries(TIMES.map((name) => [name, DateTimeOrNull])),
  }),
  async run({ held: monitor }) {
    const status = await monitor.json('GET', monitor.path)
    return {
      value: {
        publicId: monitor.publicId,
        planId: said(status.planId),
        state: STATES.find((state) => state === status.state) ?? 'waiting',
        label: said(status.name, MAX_LABEL_CHARS),
        expects: expectedBy(status),
        remainingHeartbeats: Number(status.remainingHeartbeats),
        ...Object.fromEntries(TIMES.map((name) => [name, said(status[name]) || null])),
      },
    }
  },
}

export const PING: HeldTool = {
  name: 'ping',
  title: 'Ping a monitor',
  description: () =>
    'Tells a monitor that its job is alive, that a run starts, or that it failed. Uses one of its pings.',
  hints: {},
  about: { pulse: 'ping' },
  input: () => ({ signal: Type.Enum(['ping', 'start', 'fail'], { default: 'ping' }) }),
  async run({ args: { signal = 'ping' }, held: monitor }) {
    await monitor.done('POST', `/p/${monitor.publicId}${signal === 'ping' ? '' : `/${signal}`}`)
    return { text: 'Recorded.' }
  },
}
