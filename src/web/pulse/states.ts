/** The words for the states of a monitor. */
import type { PulseState } from '../../client/index.ts'

export const STATES: Record<PulseState, { title: string; means: string }> = {
  waiting: { title: 'Waiting', means: 'No ping has come yet.' },
  operational: { title: 'Operational', means: 'The pings come as they should.' },
  late: { title: 'Late', means: 'A ping is overdue, beyond its grace.' },
  exhausted: { title: 'Exhausted', means: 'All pings of the plan are used.' },
  expired: { title: 'Expired', means: 'The time of this monitor is over.' },
}
