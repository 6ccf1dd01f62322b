/** Shows how a job pings: the file with its token, the line of curl, and the line of its schedule. */
import type { PulseCapability, PulseSchedule, PulseStatus } from '../../client/index.ts'
import { button, codeBox } from '../components.ts'
import { el, fill } from '../dom.ts'
import { duration } from '../format.ts'
import { cronFields } from './schedule.ts'

export type Lesson = {
  element: HTMLElement
  /** Shows the schedule of these settings. */
  show(status: PulseStatus): void
}

/**
 * The token is in a file, because other users of a computer can see command lines.
 * @param rotate replaces the token, after a question.
 */
export function createLesson(
  { publicId, pingToken }: PulseCapability,
  rotate: () => Promise<void>,
): Lesson {
  const header = `header = "Authorization: Bearer ${pingToken}"`
  const curl = `curl -fsS -m 10 --retry 3 -X POST -K ~/.mayfly-ping ${location.origin}/p/${publicId}`
  const schedule = el('div', { class: 'stack' })
  let shown = ''

  const element = el(
    'section',
    { class: 'card stack' },
    el('h2', {}, 'Ping it from a job'),
    el(
      'p',
      {},
      'Once, on the computer that runs the job: save its token in a file that only you can read.',
    ),
    codeBox(`(umask 077; echo '${header}' > ~/.mayfly-ping)`, {
      label: 'the file with the token',
      isWrapped: true,
    }),
    el('p', {}, 'Then, at the end of each run:'),
    codeBox(curl, { label: 'the line of curl', isWrapped: true }),
    schedule,
    el(
      'p',
      { class: 'small quiet' },
      'The token can only ping. The service stores nothing that a ping sends.',
    ),
    el(
      'div',
      { class: 'row between' },
      el('p', { class: 'small quiet' }, 'Did somebody else see it?'),
      button('Replace the ping token', rotate, { kind: 'small' }),
    ),
  )

  return {
    element,
    show({ expectedIntervalSeconds: seconds, schedule: set }) {
      const next = set === null ? String(seconds) : `${set.cron} ${set.timeZone}`
      if (next === shown) return
      shown = next
      const work = `/path/to/job && ${curl}`
      fill(schedule, ...(set === null ? scheduled(seconds, work) : atTimes(set, work)))
    },
  }
}

/** The line of crontab of a schedule. Cron itself knows only the time zone of its computer. */
function atTimes({ cron, timeZone }: PulseSchedule, work: string): HTMLElement[] {
  return [
    el(
      'p',
      {},
      `In the crontab of a computer whose time zone is ${timeZone}, and only if the job succeeds:`,
    ),
    codeBox(`${cron} ${work}`, { label: 'the line of crontab', isWrapped: true }),
  ]
}

const WORDS: Record<number, string> = { 60: 'minute', 3600: 'hour', 86400: 'day' }

function scheduled(seconds: number, work: string): HTMLElement[] {
  // “Every minute” for “every 1 min”.
  const every = WORDS[seconds] ?? duration(seconds * 1000)
  const fields = cronFields(seconds)
  if (fields !== null) {
    return [
      el('p', {}, `In a crontab, every ${every}, and only if the job succeeds:`),
      codeBox(`${fields} ${work}`, { label: 'the line of crontab', isWrapped: true }),
    ]
  }
  return [
    el(
      'p',
      {},
      `A crontab cannot say “every ${every}”. A loop can; it pings only if the job succeeds:`,
    ),
    codeBox(`while :; do ${work}; sleep ${seconds}; done`, { label: 'the loop', isWrapped: true }),
    el(
      'p',
      { class: 'small quiet' },
      'So can a systemd timer with ',
      el('code', {}, `OnUnitActiveSec=${seconds}s`),
      '.',
    ),
  ]
}
