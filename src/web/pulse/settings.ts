/** The form with the settings of a monitor. */
import { MayflyError } from '../../client/errors.ts'
import type { PulseSettings, PulseStatus } from '../../client/index.ts'
import { hasInvisible } from '../../lib/invisible.ts'
import { field, notice, toast } from '../components.ts'
import { el, fill } from '../dom.ts'
import { duration, sentence } from '../format.ts'
import { type DurationField, durationField } from './duration-field.ts'

/** The bounds of the interface, whatever the plan says. */
const MAX_NAME = 80
const MAX_DESCRIPTION = 240
const MIN_INTERVAL_SECONDS = 20
const MIN_GRACE_SECONDS = 60
const MAX_SECONDS = 604_800

/** @param save sends the settings, and rejects if the service refuses them. */
export function settingsForm(
  status: PulseStatus,
  save: (settings: PulseSettings) => Promise<void>,
): HTMLElement {
  const inputs = inputsFor(status)
  const problems = el('div', { class: 'problems', 'aria-live': 'assertive' })

  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const problem = problemIn(inputs)
    fill(problems, problem !== null && notice('warn', el('p', {}, problem)))
    if (problem !== null) return
    try {
      await save(settingsIn(inputs))
      toast('Saved')
    } catch (error) {
      fill(problems, notice('bad', el('p', {}, refusalOf(error))))
    }
  }

  return el(
    'form',
    { class: 'card stack', novalidate: true, onsubmit: submit },
    el('h2', {}, 'Settings'),
    ...labelled(inputs),
    problems,
    el('button', { type: 'submit', class: 'button primary' }, 'Save'),
  )
}

type Inputs = {
  name: HTMLInputElement
  description: HTMLTextAreaElement
  interval: DurationField
  grace: DurationField
}

function inputsFor(status: PulseStatus): Inputs {
  const name = el('input', { type: 'text', dir: 'auto', autocomplete: 'off' })
  name.value = status.name
  const description = el('textarea', { class: 'prose', dir: 'auto', rows: '2' })
  description.value = status.description
  const interval = durationField('A ping every', status.expectedIntervalSeconds)
  const grace = durationField('Grace', status.graceSeconds)
  return { name, description, interval, grace }
}

function labelled({ name, description, interval, grace }: Inputs): HTMLElement[] {
  return [
    field('Name', name),
    field('Description', description),
    el('div', { class: 'pairs' }, interval.element, grace.element),
    el(
      'p',
      { class: 'small quiet' },
      'The monitor turns late once a ping is overdue by more than the grace. The name and the description are part of what you share.',
    ),
  ]
}

const settingsIn = ({ name, description, interval, grace }: Inputs): PulseSettings => ({
  name: name.value,
  description: description.value,
  expectedIntervalSeconds: interval.seconds() ?? 0,
  graceSeconds: grace.seconds() ?? 0,
})

/** A sentence about what the service would refuse, or null. */
function problemIn({ name, description, interval, grace }: Inputs): string | null {
  if ([...name.value].length > MAX_NAME) return `The name can have up to ${MAX_NAME} characters.`
  if (hasInvisible(name.value)) {
    return 'The name contains invisible characters. Type it instead of pasting it.'
  }
  if ([...description.value].length > MAX_DESCRIPTION) {
    return `The description can have up to ${MAX_DESCRIPTION} characters.`
  }
  if (!isWithin(interval.seconds(), MIN_INTERVAL_SECONDS)) {
    return `The interval must be ${boundsFrom(MIN_INTERVAL_SECONDS)}.`
  }
  if (!isWithin(grace.seconds(), MIN_GRACE_SECONDS)) {
    return `The grace must be ${boundsFrom(MIN_GRACE_SECONDS)}.`
  }
  return null
}

function isWithin(seconds: number | null, min: number): boolean {
  return seconds !== null && seconds >= min && seconds <= MAX_SECONDS
}

const boundsFrom = (min: number): string =>
  `${duration(min * 1000)} to ${duration(MAX_SECONDS * 1000)}, in whole seconds`

function refusalOf(error: unknown): string {
  const isGrace = error instanceof MayflyError && error.field === 'graceSeconds'
  return isGrace ? `The grace must be ${error.expected} seconds in this plan.` : sentence(error)
}
