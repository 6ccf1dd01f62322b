/** The form that filters the list of requests. */
import type { EventFilter } from '../../client/index.ts'
import { field } from '../components.ts'
import { el } from '../dom.ts'

/** A pause of this length ends the typing of a word. */
const TYPING_MS = 250
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

/** @param onChange is called with the filter each time that it changes. */
export function filterForm(onChange: (query: EventFilter) => unknown): HTMLElement {
  const q = el('input', { type: 'search', maxlength: '120', autocomplete: 'off' })
  const type = el('input', {
    type: 'search',
    maxlength: '255',
    autocomplete: 'off',
    placeholder: 'application/json',
  })
  const method = choice(['', ...METHODS])
  const access = choice(['', 'public', 'authenticated'])
  let typing: ReturnType<typeof setTimeout> | undefined
  const changed = (): void => {
    clearTimeout(typing)
    typing = setTimeout(() => onChange(query()), TYPING_MS)
  }
  const query = (): EventFilter => ({
    ...(q.value === '' ? {} : { q: q.value }),
    ...(type.value.trim() === '' ? {} : { contentType: type.value.trim() }),
    ...(method.value === '' ? {} : { method: method.value }),
    ...(access.value === 'public' || access.value === 'authenticated'
      ? { access: access.value }
      : {}),
  })
  return el(
    'search',
    { class: 'filters', oninput: changed },
    allColumns(field('Search', q)),
    field('Method', method),
    field('Access', access),
    allColumns(field('Content type', type)),
  )
}

function choice(values: readonly string[]): HTMLSelectElement {
  const options = values.map((value) => el('option', { value }, value === '' ? 'any' : value))
  return el('select', {}, ...options)
}

function allColumns(element: HTMLElement): HTMLElement {
  element.classList.add('all')
  return element
}
