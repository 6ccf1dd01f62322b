/** A field for a duration: a number and its unit. */
import { el } from '../dom.ts'

const UNITS = [
  { name: 'days', seconds: 86_400 },
  { name: 'hours', seconds: 3_600 },
  { name: 'minutes', seconds: 60 },
  { name: 'seconds', seconds: 1 },
]

export type DurationField = {
  element: HTMLElement
  /** Whole seconds, or null if what stands there is no whole number of them. */
  seconds(): number | null
}

/** Shows `initial` seconds in the largest unit that has a whole number of them. */
export function durationField(label: string, initial: number): DurationField {
  const id = `field-${label.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`
  const shown = UNITS.find(({ seconds }) => initial % seconds === 0)
  const number = el('input', { id, type: 'number', min: '0', step: 'any', required: true })
  number.value = String(initial / (shown?.seconds ?? 1))
  const unit = el(
    'select',
    { 'aria-label': `${label}: unit` },
    ...UNITS.toReversed().map(({ name, seconds }) =>
      el('option', { value: String(seconds), selected: name === shown?.name }, name),
    ),
  )
  return {
    element: el(
      'div',
      { class: 'field' },
      el('label', { for: id }, label),
      el('div', { class: 'duration' }, number, unit),
    ),
    seconds() {
      // Half a minute is 30 seconds, but floating point must not make 29.999 of it.
      const seconds = Math.round(number.valueAsNumber * Number(unit.value) * 1000) / 1000
      return Number.isInteger(seconds) ? seconds : null
    },
  }
}
