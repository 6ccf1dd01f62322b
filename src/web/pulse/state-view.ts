/** Shows a monitor: its state in words, countdowns, a strip of pings, and how much of the plan is used. */
import type { PulseStatus } from '../../client/index.ts'
import { usage } from '../components.ts'
import { el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { count, moment, remaining } from '../format.ts'
import { endOf } from '../live.ts'
import { clock } from '../service.ts'
import { STATES } from './states.ts'
import { pingStrip } from './strip.ts'

/** How often the strip is drawn again, because it ends at the current time. */
const STRIP_MS = 15_000

export type StateView = {
  /** The heading with the monitor's name. */
  title: HTMLElement
  /** All other parts, from the description to the counter. */
  parts: HTMLElement[]
  expiry: HTMLElement
  show(status: PulseStatus): void
  /** Refreshes what changes only with time. */
  showTimes(): void
}

export function createStateView(initial: PulseStatus): StateView {
  const title = el('h2', { dir: 'auto' })
  const description = el('p', { class: 'quiet', dir: 'auto' })
  const state = el('p', { class: 'pulse-state' })
  const meaning = el('p', {})
  const countdowns = el('dl', { class: 'facts' })
  const strip = el('div', {})
  const counter = el('div', {})
  const expiry = el('p', { class: 'small quiet number' })
  let status = initial
  let stripDrawnAt = 0

  function show(now: PulseStatus): void {
    status = now
    title.textContent = now.name === '' ? 'Your monitor' : plainly(now.name)
    description.textContent = now.description
    description.hidden = now.description === ''
    state.dataset.state = now.state
    state.textContent = STATES[now.state].title
    meaning.textContent = `${STATES[now.state].means} So since ${moment(now.stateChangedAt)}.`
    const { acceptedHeartbeatCount: used, heartbeatLimit: limit } = now
    fill(counter, usage('Pings', { used, limit, show: count }))
    stripDrawnAt = 0
    showTimes()
  }

  function showTimes(): void {
    const now = clock.now()
    fill(countdowns, ...countdownsOf(status, now))
    expiry.textContent = `Ends ${endOf(status.expiresAt)}.`
    if (now - stripDrawnAt < STRIP_MS) return
    stripDrawnAt = now
    fill(strip, pingStrip(status, now))
  }

  const parts = [description, state, meaning, countdowns, strip, counter]
  return { title, parts, expiry, show, showTimes }
}

function countdownsOf(
  { lastPingAt, nextExpectedAt, lateAt }: PulseStatus,
  now: number,
): HTMLElement[] {
  const since = lastPingAt === null ? null : now - Date.parse(lastPingAt)
  const until = (iso: string | null, over: string): string => {
    if (iso === null) return '–'
    const left = Date.parse(iso) - now
    return left > 0 ? `in ${remaining(left)}` : `${over} ${remaining(-left)}`
  }
  return [
    ...fact('Last ping', since === null ? 'none yet' : `${remaining(Math.max(since, 0))} ago`),
    ...fact('Next ping', until(nextExpectedAt, 'overdue by')),
    ...fact('Counts as late', until(lateAt, 'for')),
  ]
}

function fact(name: string, value: string): HTMLElement[] {
  return [el('dt', {}, name), el('dd', { class: 'number' }, value)]
}
