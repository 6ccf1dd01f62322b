/** Shows a monitor: its state in words, countdowns, its history, and how much of the plan is used. */
import type { PulseStatus } from '../../client/index.ts'
import { usage } from '../components.ts'
import { el, fill, setText } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { count, duration, moment } from '../format.ts'
import { endOf } from '../live.ts'
import { clock } from '../service.ts'
import { STATES } from './states.ts'
import { createStrip } from './strip.ts'

/** How often the strip is drawn again, because it ends at the current time. */
const STRIP_MS = 15_000

export type StateView = {
  /** The heading with the monitor's name. */
  title: HTMLElement
  /** What stands above the button to ping. */
  now: HTMLElement[]
  /** What stands below it: the history and the counter. */
  past: HTMLElement[]
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
  const last = fact('Last ping')
  const next = fact('Next ping')
  const late = fact('Late')
  const run = fact('Last run')
  const countdowns = el(
    'dl',
    { class: 'facts' },
    ...last.parts,
    ...next.parts,
    ...late.parts,
    ...run.parts,
  )
  const strip = createStrip()
  const counter = el('div', {})
  const ending = document.createTextNode('')
  const expiry = el('p', { class: 'small quiet number' }, ending)
  let status = initial
  let stripDrawnAt = 0

  function show(now: PulseStatus): void {
    status = now
    title.textContent = titleOf(now)
    description.textContent = plainly(now.description)
    description.hidden = now.description === ''
    state.dataset.state = now.state
    state.textContent = STATES[now.state].title
    const { means, since } = STATES[now.state]
    meaning.textContent = `${failureOf(now) ?? means} ${since} ${moment(now.stateChangedAt)}.`
    const ran = runOf(now)
    for (const part of run.parts) part.hidden = ran === null
    run.set(ran ?? '')
    const { acceptedHeartbeatCount: used, heartbeatLimit: limit } = now
    fill(counter, usage('Pings', { used, limit, show: count }))
    stripDrawnAt = 0
    showTimes()
  }

  function showTimes(): void {
    const now = clock.now()
    const { lastPingAt, nextExpectedAt, lateAt } = status
    const since = lastPingAt === null ? null : now - Date.parse(lastPingAt)
    last.set(since === null ? 'none yet' : `${duration(since)} ago`)
    next.set(until(nextExpectedAt, { now, over: 'overdue by' }))
    late.set(until(lateAt, { now, over: 'for' }))
    setText(ending, `Ends ${endOf(status.expiresAt)}.`)
    if (now - stripDrawnAt < STRIP_MS) return
    stripDrawnAt = now
    strip.draw(status, now)
  }

  const now = [description, state, meaning, countdowns]
  const past = [strip.element, counter]
  return { title, now, past, expiry, show, showTimes }
}

/** A sentence about the failed run that makes the monitor late, or null. */
function failureOf({ state, failure }: PulseStatus): string | null {
  if (failure === null || state !== 'late') return null
  const code = failure.exitCode === null ? '' : ` with exit code ${failure.exitCode}`
  return `The last run failed${code}, ${moment(failure.since)}.`
}

/** How the last run ended, and how many are open, or null for a job that only pings. */
function runOf({ lastRun, openRuns }: PulseStatus): string | null {
  const open = openRuns.length === 0 ? '' : `${count(openRuns.length)} running`
  if (lastRun === null) return open || null
  const { result, exitCode, durationSeconds, endedAt } = lastRun
  const code = exitCode === null || exitCode === 0 ? '' : ` with exit code ${exitCode}`
  const took = durationSeconds === null ? '' : ` after ${duration(durationSeconds * 1000)}`
  const ended = `${result === 'ok' ? 'Succeeded' : 'Failed'}${code}${took}, ${moment(endedAt)}`
  return [ended, open].filter((part) => part !== '').join('; ')
}

/** The monitor's name, or a word for one without. */
export function titleOf({ name }: PulseStatus): string {
  return name === '' ? 'Your monitor' : plainly(name)
}

function until(iso: string | null, { now, over }: { now: number; over: string }): string {
  if (iso === null) return '–'
  const left = Date.parse(iso) - now
  // Rounded up, so that it is not yet 0 s while there is time left.
  return left > 0 ? `in ${duration(left + 999)}` : `${over} ${duration(-left)}`
}

/** A name and a text that changes in place: what a person has selected in it stays selected. */
function fact(name: string): { parts: HTMLElement[]; set: (value: string) => void } {
  const value = document.createTextNode('')
  return {
    parts: [el('dt', {}, name), el('dd', { class: 'number' }, value)],
    set: (text) => setText(value, text),
  }
}
