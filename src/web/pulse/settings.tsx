/** What an owner sets: name and interval or schedule, what is shared, the ping token, and the switch. */
import { useState } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import type { PulseCapability, PulseSettings, PulseStatus } from '../../client/index.ts'
import type { PulseClient } from '../../client/pulse.ts'
import { reasonOf, ZONE } from '../lib/format.ts'
import { Button, Choice, Tabs } from '../ui/button.tsx'
import { CodeBox } from '../ui/copy.tsx'
import { type Fields, Form, Input } from '../ui/field.tsx'
import { attempt, onConsent, toast } from '../ui/overlay.tsx'
import { SETUPS } from './snippets.ts'

/** The fields by their names in the API. */
const LABELS: Record<string, string> = {
  name: 'Name',
  description: 'Description',
  expectedIntervalSeconds: 'A ping every, in seconds',
  graceSeconds: 'Grace, in seconds',
}

const UNITS = [
  { name: 'seconds', seconds: 1 },
  { name: 'minutes', seconds: 60 },
  { name: 'hours', seconds: 3_600 },
  { name: 'days', seconds: 86_400 },
]

const EXPECTS = ['At an interval', 'By a schedule'] as const

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
  const [chosen, choose] = useState(names[0] ?? '')
  const job = {
    url: `${location.origin}/p/${publicId}`,
    pingToken,
    intervalSeconds: status.expectedIntervalSeconds,
    schedule: status.schedule,
  }
  return (
    <section class="card stack" aria-label="Set up your job">
      <h2>Set up your job</h2>
      <Tabs label="Runner" names={names} chosen={chosen} onChoose={choose}>
        {SETUPS[chosen]?.(job).map(({ label, before, text }) => (
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
  const [expects, setExpects] = useState<(typeof EXPECTS)[number]>(
    schedule === null ? 'At an interval' : 'By a schedule',
  )
  const isScheduled = expects === 'By a schedule'
  const grace = schedule?.graceSeconds ?? status.graceSeconds

  /** A schedule is replaced last, so that a refusal leaves it as it was. */
  async function submit(field: Fields): Promise<void> {
    const common = { name: field('name'), description: field('description') }
    const graceSeconds = secondsIn(field, 'grace')
    if (isScheduled) {
      const [cron, timeZone] = [field('cron').trim(), field('zone').trim()]
      await monitor.update(common)
      await monitor.setSchedule({ cron, timeZone, graceSeconds })
    } else {
      const expectedIntervalSeconds = secondsIn(field, 'interval')
      await monitor.update({ ...common, expectedIntervalSeconds, graceSeconds })
      if (schedule !== null) await monitor.deleteSchedule()
    }
    onStatus(await monitor.status())
    toast('Saved.')
  }

  return (
    <Form
      card
      label="Settings"
      heading={<h2>Settings</h2>}
      action="Save"
      weight="secondary"
      onSubmit={submit}
      explain={(error) => refusalOf(error, isScheduled)}
    >
      <Input label="Name" name="name" dir="auto" defaultValue={status.name} />
      <Input
        label="Description"
        name="description"
        rows={2}
        dir="auto"
        spellcheck
        autocapitalize="sentences"
        defaultValue={status.description}
      />
      <Choice
        label="When a ping is expected"
        names={EXPECTS}
        chosen={expects}
        onChoose={setExpects}
      />
      {isScheduled ? (
        <>
          <Input
            label="Minute, hour, day, month, weekday"
            hint="Five fields of crontab."
            name="cron"
            class="mono"
            placeholder="0 3 * * 1-5"
            defaultValue={schedule?.cron ?? ''}
          />
          <Input label="Time zone" name="zone" defaultValue={schedule?.timeZone ?? ZONE} />
        </>
      ) : (
        <Duration name="interval" label="A ping every" initial={status.expectedIntervalSeconds} />
      )}
      <Duration
        key={expects}
        name="grace"
        label="Grace"
        initial={isScheduled ? grace : status.graceSeconds}
      />
      <p class="small quiet">The monitor is late once a ping is overdue by more than the grace.</p>
    </Form>
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

/** Half a minute is 30 seconds, but floating point must not make 29.999 of it. */
const secondsIn = (field: Fields, name: string): number =>
  Math.round(Number(field(name)) * Number(field(`${name}-unit`)) * 1000) / 1000

function refusalOf(error: unknown, isSchedule: boolean): string {
  if (!(error instanceof MayflyError) || error.status !== 400) return reasonOf(error)
  const label = LABELS[error.field ?? '']
  if (label !== undefined && error.expected !== null) return `${label}: ${error.expected}.`
  if (error.field === 'timeZone') {
    return 'Enter a time zone of the IANA database, such as Europe/Berlin or UTC.'
  }
  return isSchedule
    ? 'The service refused this schedule. It needs five fields, with no two runs closer than 20 s.'
    : reasonOf(error)
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
            Anyone with this address sees name, description, state and last ping. It ends for good
            when you stop sharing.
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

/** Nothing can be bound to a monitor that is over. */
const NEXT: Partial<Record<PulseStatus['state'], string>> = {
  waiting: 'Ping the monitor first. Then a secret can be bound to it.',
  operational: 'Ready. Buy a secret with this id, then ping again: that ping arms it.',
  late: 'The monitor is late. Ping it before you bind a secret.',
}

/** The switch, which binds secrets to the monitor's silence. The service shows its id to who asks to make it. */
export function Switch({
  status,
  monitor: { makeSwitch, retireSwitch },
}: {
  status: PulseStatus
  monitor: Pick<PulseClient, 'makeSwitch' | 'retireSwitch'>
}) {
  const [switchId, setSwitchId] = useState<string | null>(null)
  function askToRetire(): Promise<void> {
    const body = 'No more secrets can be bound to it. Bound secrets stay bound.'
    return onConsent('Retire the switch?', { body, action: 'Retire it' }, async () => {
      await retireSwitch()
      setSwitchId(null)
      toast('The switch is retired.')
    })
  }
  return (
    <section class="card stack" aria-label="Dead man’s switch">
      <h2>Dead man’s switch</h2>
      <p class="quiet">A secret can stay shut while you ping, and open when the pings stop.</p>
      <p class="small">{NEXT[status.state]}</p>
      {switchId === null ? (
        <div class="row">
          <Button onClick={() => attempt(async () => setSwitchId((await makeSwitch()).switchId))}>
            Show the switch id
          </Button>
        </div>
      ) : (
        <>
          <CodeBox text={switchId} label="the switch id" wrapped />
          <p class="small quiet">
            Paste it when you <a href="/whisper">write a secret</a>. Its receipt shows whether it is
            armed.
          </p>
          <div class="row">
            <Button danger onClick={askToRetire}>
              Retire it
            </Button>
          </div>
        </>
      )}
    </section>
  )
}
