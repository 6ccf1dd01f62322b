/** The form with the settings of a monitor. */
import { MayflyError } from '../../client/errors.ts'
import type { PulseSettings, PulseStatus } from '../../client/index.ts'
import { field, notice, toast } from '../components.ts'
import { el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { count, sentence } from '../format.ts'

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
  interval: HTMLInputElement
  grace: HTMLInputElement
}

function inputsFor(status: PulseStatus): Inputs {
  const name = el('input', { type: 'text', dir: 'auto', autocomplete: 'off' })
  name.value = status.name
  const description = el('textarea', { class: 'prose', dir: 'auto', rows: '2' })
  description.value = status.description
  const interval = seconds(status.expectedIntervalSeconds, MIN_INTERVAL_SECONDS)
  const grace = seconds(status.graceSeconds, MIN_GRACE_SECONDS)
  return { name, description, interval, grace }
}

function labelled({ name, description, interval, grace }: Inputs): HTMLElement[] {
  return [
    field('Name', name),
    field('Description', description),
    el(
      'div',
      { class: 'pairs' },
      field('A ping every (seconds)', interval),
      field('Grace (seconds)', grace),
    ),
    el(
      'p',
      { class: 'small quiet' },
      'A monitor is late when a ping is overdue by more than the grace. Name and description are shared with the status.',
    ),
  ]
}

const settingsIn = ({ name, description, interval, grace }: Inputs): PulseSettings => ({
  name: name.value,
  description: description.value,
  expectedIntervalSeconds: interval.valueAsNumber,
  graceSeconds: grace.valueAsNumber,
})

/** A sentence about what the service would refuse, or null. */
function problemIn({ name, description, interval, grace }: Inputs): string | null {
  if ([...name.value].length > MAX_NAME) return `The name has at most ${MAX_NAME} characters.`
  if (plainly(name.value) !== name.value || name.value.includes('\t')) {
    return 'The name holds characters that cannot be seen. Type it instead of pasting it.'
  }
  if ([...description.value].length > MAX_DESCRIPTION) {
    return `The description has at most ${MAX_DESCRIPTION} characters.`
  }
  if (!interval.validity.valid) {
    return `The interval is ${MIN_INTERVAL_SECONDS} to ${count(MAX_SECONDS)} seconds.`
  }
  if (!grace.validity.valid) {
    return `The grace is ${MIN_GRACE_SECONDS} to ${count(MAX_SECONDS)} seconds.`
  }
  return null
}

function refusalOf(error: unknown): string {
  const isRefused = error instanceof MayflyError && error.phrase === 'invalid settings'
  return isRefused ? 'The grace is below the least of this plan.' : sentence(error)
}

function seconds(value: number, min: number): HTMLInputElement {
  const input = el('input', {
    type: 'number',
    min: String(min),
    max: String(MAX_SECONDS),
    step: '1',
    required: true,
  })
  input.value = String(value)
  return input
}
