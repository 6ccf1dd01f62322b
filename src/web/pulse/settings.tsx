/** What an owner sets: name and interval or schedule, what is shared, the ping token, and the switch. */
import { useSignal } from '@preact/signals'
import { MayflyError } from '../../client/errors.ts'
import type { PulseCapability, PulseSettings, PulseStatus } from '../../client/index.ts'
import type { PulseClient } from '../../client/pulse.ts'
import { hasInvisible } from '../../lib/invisible.ts'
import { duration, sentence, ZONE } from '../lib/format.ts'
import { Button, Choice, Tabs } from '../ui/button.tsx'
import { CodeBox } from '../ui/copy.tsx'
import { Field } from '../ui/field.tsx'
import { attempt, confirmed, toast } from '../ui/overlay.tsx'
import { Notice } from '../ui/show.tsx'
import { SETUPS } from './snippets.ts'

/** The bounds of the interface, whatever the plan says. */
const MAX_NAME = 80
const MAX_DESCRIPTION = 240
const MIN_INTERVAL_SECONDS = 20
const MIN_GRACE_SECONDS = 60
const MAX_SECONDS = 604_800

const UNITS = [
  { name: 'seconds', seconds: 1 },
  { name: 'minutes', seconds: 60 },
  { name: 'hours', seconds: 3_600 },
  { name: 'days', seconds: 86_400 },
]

export function Setup({
  capability: { publicId, pingToken },
  status,
  onRotate,
}: {
  capability: PulseCapability
  status: PulseStatus
  onRotate: () => Promise<void>
}) {
  const names = Object.keys(SETUPS)
  const chosen = useSignal(names[0] ?? '')
  const job = {
    url: `${location.origin}/p/${publicId}`,
    pingToken,
    intervalSeconds: status.expectedIntervalSeconds,
    schedule: status.schedule,
  }
  return (
    <section class="card stack" aria-label="Set up your job">
      <h2>Set up your job</h2>
      <Tabs
        label="Runner"
        names={names}
        chosen={chosen.value}
        onChoose={(name) => {
          chosen.value = name
        }}
      >
        {SETUPS[chosen.value]?.(job).map(({ label, before, text }) => (
          <div class="stack tight" key={label}>
            {before !== undefined && <p class="small">{before}</p>}
            <CodeBox text={text} label={label} wrapped />
          </div>
        ))}
      </Tabs>
      <div class="row between small quiet">
        <span>The token can only ping. Nothing that a ping sends is stored.</span>
        <Button weight="quiet" onClick={onRotate}>
          Replace the ping token
        </Button>
      </div>
    </section>
  )
}

/** The settings, and the schedule in place of the interval. */
export function Settings({
  status,
  monitor,
  onStatus,
}: {
  status: PulseStatus
  monitor: Pick<PulseClient, 'update' | 'setSchedule' | 'deleteSchedule' | 'status'>
  onStatus: (status: PulseStatus) => void
}) {
  const { schedule } = status
  const expects = useSignal<'At an interval' | 'By a schedule'>(
    schedule === null ? 'At an interval' : 'By a schedule',
  )
  const problem = useSignal<string | null>(null)

  async function submit(submitted: Event & { currentTarget: HTMLFormElement }): Promise<void> {
    submitted.preventDefault()
    const form = new FormData(submitted.currentTarget)
    const name = String(form.get('name') ?? '')
    const description = String(form.get('description') ?? '')
    const graceSeconds = secondsIn(form, 'grace')
    const common: PulseSettings = { name, description }
    problem.value = problemIn({ name, description })
    if (problem.value !== null) return
    try {
      if (expects.value === 'By a schedule') {
        const cron = String(form.get('cron') ?? '').trim()
        const timeZone = String(form.get('zone') ?? '').trim()
        await monitor.setSchedule({ cron, timeZone, graceSeconds: graceSeconds ?? 0 })
        await monitor.update(common)
        onStatus(await monitor.status())
      } else {
        const expectedIntervalSeconds = secondsIn(form, 'interval')
        problem.value = boundsProblem(expectedIntervalSeconds, graceSeconds)
        if (problem.value !== null || expectedIntervalSeconds === null || graceSeconds === null)
          return
        if (schedule !== null) await monitor.deleteSchedule()
        onStatus(await monitor.update({ ...common, expectedIntervalSeconds, graceSeconds }))
      }
      toast('Saved.')
    } catch (error) {
      problem.value = refusalOf(error, expects.value === 'By a schedule')
    }
  }

  const isScheduled = expects.value === 'By a schedule'
  const grace = isScheduled ? (schedule?.graceSeconds ?? status.graceSeconds) : status.graceSeconds
  return (
    <form class="card stack" noValidate aria-label="Settings" onSubmit={submit}>
      <h2>Settings</h2>
      <Field label="Name">
        <input name="name" type="text" dir="auto" autocomplete="off" defaultValue={status.name} />
      </Field>
      <Field label="Description">
        <textarea name="description" dir="auto" rows={2} defaultValue={status.description} />
      </Field>
      <Choice
        label="When a ping is expected"
        names={['At an interval', 'By a schedule']}
        chosen={expects.value}
        onChoose={(chosen) => {
          expects.value = chosen
        }}
      />
      {isScheduled ? (
        <>
          <Field label="Minute, hour, day, month, weekday" hint="Five fields of crontab.">
            <input
              name="cron"
              type="text"
              class="mono"
              autocomplete="off"
              spellcheck={false}
              placeholder="0 3 * * 1-5"
              defaultValue={schedule?.cron ?? ''}
            />
          </Field>
          <Field label="Time zone">
            <input
              name="zone"
              type="text"
              autocomplete="off"
              spellcheck={false}
              defaultValue={schedule?.timeZone ?? ZONE}
            />
          </Field>
        </>
      ) : (
        <Duration name="interval" label="A ping every" initial={status.expectedIntervalSeconds} />
      )}
      <Duration key={String(isScheduled)} name="grace" label="Grace" initial={grace} />
      <p class="small quiet">It is late once a ping is overdue by more than the grace.</p>
      <div aria-live="assertive">
        {problem.value !== null && <Notice kind="bad">{problem.value}</Notice>}
      </div>
      <div class="row">
        <Button submits weight="primary">
          Save
        </Button>
      </div>
    </form>
  )
}

/** A number and its unit, in the largest one that has a whole number of them. */
function Duration({ name, label, initial }: { name: string; label: string; initial: number }) {
  const shown = UNITS.findLast(({ seconds }) => initial % seconds === 0) ?? UNITS[0]
  return (
    <div class="field">
      <label for={`${name}-amount`}>{label}</label>
      <div class="with-unit">
        <input
          id={`${name}-amount`}
          name={name}
          type="number"
          min="0"
          step="any"
          defaultValue={String(initial / (shown?.seconds ?? 1))}
        />
        <select name={`${name}-unit`} aria-label={`${label}: unit`}>
          {UNITS.map(({ name: unit, seconds }) => (
            <option key={unit} value={seconds} selected={seconds === shown?.seconds}>
              {unit}
            </option>
          ))}
        </select>
      </div>
    </div>
  )
}

/** Whole seconds, or null. Half a minute is 30 seconds, but floating point must not make 29.999 of it. */
function secondsIn(form: FormData, name: string): number | null {
  const text = String(form.get(name) ?? '')
  const seconds = Math.round(Number(text) * Number(form.get(`${name}-unit`)) * 1000) / 1000
  return text !== '' && Number.isInteger(seconds) ? seconds : null
}

/** A sentence about what the service would refuse, or null. */
function problemIn({ name, description }: { name: string; description: string }): string | null {
  if ([...name].length > MAX_NAME) return `The name can have up to ${MAX_NAME} characters.`
  if (hasInvisible(name))
    return 'The name contains invisible characters. Type it instead of pasting it.'
  if ([...description].length > MAX_DESCRIPTION) {
    return `The description can have up to ${MAX_DESCRIPTION} characters.`
  }
  return null
}

function boundsProblem(interval: number | null, grace: number | null): string | null {
  if (!isWithin(interval, MIN_INTERVAL_SECONDS))
    return `The interval must be ${boundsFrom(MIN_INTERVAL_SECONDS)}.`
  if (!isWithin(grace, MIN_GRACE_SECONDS))
    return `The grace must be ${boundsFrom(MIN_GRACE_SECONDS)}.`
  return null
}

const isWithin = (seconds: number | null, min: number): boolean =>
  seconds !== null && seconds >= min && seconds <= MAX_SECONDS

const boundsFrom = (min: number): string =>
  `${duration(min * 1000)} to ${duration(MAX_SECONDS * 1000)}, in whole seconds`

function refusalOf(error: unknown, isSchedule: boolean): string {
  if (!(error instanceof MayflyError) || error.status !== 400) return sentence(error)
  if (error.field === 'timeZone') {
    return 'This is no time zone of the IANA database, such as Europe/Berlin or UTC.'
  }
  if (error.field === 'graceSeconds') {
    const seconds = error.expected ?? 'long enough for the plan, and at most 604800'
    return `The grace must be ${seconds} seconds in this plan.`
  }
  return isSchedule
    ? 'The service refused this schedule. It needs five fields, with no two runs closer than 20 s.'
    : sentence(error)
}

export function Sharing({
  status: { publicStatusEnabled: isShared, publicStatusId },
  onSave,
}: {
  status: PulseStatus
  onSave: (settings: PulseSettings) => Promise<void>
}) {
  const statusUrl = `${location.origin}/status/${publicStatusId}`
  const badgeUrl = `${location.origin}/api/pulse/public/${publicStatusId}/badge.svg`
  return (
    <section class="card stack" aria-label="Public status">
      <h2>Public status</h2>
      {isShared ? (
        <>
          <p class="small">
            Anyone with this address sees name, description, state and last ping. If you stop
            sharing, it stops for good.
          </p>
          <CodeBox text={statusUrl} label="the address of the status" wrapped />
          <p>
            <a href={statusUrl}>Open the status page</a>
          </p>
          <CodeBox
            text={`[![state](${badgeUrl})](${statusUrl})`}
            label="the badge in Markdown"
            wrapped
          />
        </>
      ) : (
        <p class="quiet">Share it to get a public page and a badge with its state.</p>
      )}
      <div class="row">
        <Button onClick={() => attempt(() => onSave({ publicStatusEnabled: !isShared }))}>
          {isShared ? 'Stop sharing' : 'Share the status'}
        </Button>
      </div>
    </section>
  )
}

const NEXT: Record<PulseStatus['state'], string> = {
  waiting: 'Ping it first: nothing can be bound to a monitor that was never pinged.',
  operational: 'Ready. Buy a secret with this id, then ping again: that ping arms it.',
  late: 'It is late now. Nothing can be bound until the next ping.',
  exhausted: 'All pings are used. Extend it before you bind anything.',
  expired: 'It has ended. Nothing can be bound to it.',
}

/** The switch, which binds secrets to the monitor's silence. The service shows its id to who asks to make it. */
export function Switch({
  status,
  monitor: { makeSwitch, retireSwitch },
}: {
  status: PulseStatus
  monitor: Pick<PulseClient, 'makeSwitch' | 'retireSwitch'>
}) {
  const switchId = useSignal<string | null>(null)
  async function retire(): Promise<void> {
    const isWanted = await confirmed('Retire the switch?', {
      body: 'Nothing more can be bound to it. Secrets that are bound stay bound.',
      action: 'Retire it',
    })
    if (!isWanted) return
    await attempt(async () => {
      await retireSwitch()
      switchId.value = null
      toast('The switch is retired.')
    })
  }
  return (
    <section class="card stack" aria-label="Dead man’s switch">
      <h2>Dead man’s switch</h2>
      <p class="quiet">A secret can stay shut while you ping, and open when the pings stop.</p>
      <p class="small">{NEXT[status.state]}</p>
      {switchId.value === null ? (
        <div class="row">
          <Button
            onClick={() =>
              attempt(async () => {
                switchId.value = (await makeSwitch()).switchId
              })
            }
          >
            Show the switch id
          </Button>
        </div>
      ) : (
        <>
          <CodeBox text={switchId.value} label="the switch id" wrapped />
          <p class="small quiet">
            Paste it when you <a href="/whisper">write a secret</a>. Its receipt shows whether it is
            armed.
          </p>
          <div class="row">
            <Button danger onClick={retire}>
              Retire it
            </Button>
          </div>
        </>
      )}
    </section>
  )
}
