/** The words for the states of a monitor. */
import type { PulseState } from '../../client/index.ts'

type Words = {
  title: string
  /** A sentence about what it means. */
  means: string
  /** Stands before the time at which the state began. */
  since: string
}

export const STATES: Record<PulseState, Words> = {
  waiting: { title: 'Waiting', means: 'No pings yet.', since: 'Waiting since' },
  operational: {
    title: 'Operational',
    means: 'Pings are arriving on time.',
    since: 'Operational since',
  },
  late: {
    title: 'Late',
    means: 'A ping is overdue, or the last run failed.',
    since: 'Late since',
  },
  exhausted: {
    title: 'Exhausted',
    means: 'Every ping of the plan is used, so no more are accepted.',
    since: 'Used up',
  },
  expired: { title: 'Expired', means: 'This monitor has ended.', since: 'Expired' },
}
