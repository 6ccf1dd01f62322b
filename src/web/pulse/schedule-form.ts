/** The form of a schedule: a line of crontab with a time zone, in place of the interval. */
import { MayflyError } from '../../client/errors.ts'
import type { PulseSchedule, PulseStatus } from '../../client/index.ts'
import type { PulseClient } from '../../client/pulse.ts'
import { button, field, notice, toast } from '../components.ts'
import { el, fill } from '../dom.ts'
import { sentence } from '../format.ts'
import { attempt } from '../live.ts'
import { durationField } from './duration-field.ts'

export type ScheduleForm = { element: HTMLElement; show(status: PulseStatus): void }

export type ScheduleOptions = Pick<PulseClient, 'setSchedule' | 'deleteSchedule'> & {
  /** The schedule has changed. */
  onChanged(): Promise<void>
}

export function createScheduleForm(
  initial: PulseStatus,
  { setSchedule, deleteSchedule, onChanged }: ScheduleOptions,
): ScheduleForm {
  const { schedule } = initial
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  const cron = el('input', {
    type: 'text',
    class: 'mono',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    placeholder: '0 3 * * 1-5',
  })
  const zone = el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' })
  const grace = durationField('Grace of a run', schedule?.graceSeconds ?? initial.graceSeconds)
  cron.value = schedule?.cron ?? ''
  zone.value = schedule?.timeZone ?? timeZone
  const problems = el('div', { class: 'problems', 'aria-live': 'assertive' })
  const now = el('p', {})
  const back = button('Back to the interval', () =>
    attempt(async () => {
      await deleteSchedule()
      await onChanged()
      toast('The interval is used again')
    }),
  )

  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    fill(problems)
    try {
      await setSchedule(asked())
      await onChanged()
      toast('Saved')
    } catch (error) {
      fill(problems, notice('bad', el('p', {}, refusalOf(error))))
    }
  }

  const asked = (): PulseSchedule => ({
    cron: cron.value.trim(),
    timeZone: zone.value.trim(),
    graceSeconds: grace.seconds() ?? 0,
  })

  return {
    element: el(
      'form',
      { class: 'card stack', novalidate: true, onsubmit: submit, 'aria-label': 'Schedule' },
      el('h2', {}, 'Schedule'),
      now,
      field('Minute, hour, day, month, weekday', cron),
      el('div', { class: 'pairs' }, field('Time zone', zone), grace.element),
      problems,
      el(
        'div',
        { class: 'row' },
        el('button', { type: 'submit', class: 'button' }, 'Use the schedule'),
        back,
      ),
    ),
    show({ schedule: set }) {
      back.hidden = set === null
      now.textContent =
        set === null
          ? 'For a job that runs at certain times, in place of the interval: five fields of crontab.'
          : `A ping is expected at each run of “${set.cron}”, ${set.timeZone}. The interval and its grace are kept, and not used.`
    },
  }
}

function refusalOf(error: unknown): string {
  if (!(error instanceof MayflyError) || error.status !== 400) return sentence(error)
  return FIELDS[error.field ?? ''] ?? SCHEDULE
}

const SCHEDULE =
  'The service refused this schedule. It needs five fields, such as 0 3 * * 1-5, with no two runs closer than 20 s.'
const FIELDS: Record<string, string> = {
  timeZone: 'This is no time zone of the IANA database, such as Europe/Berlin or UTC.',
  graceSeconds: 'The grace is too short for this plan, or longer than 7 days.',
}
