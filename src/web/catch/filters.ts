/** The form that filters the list of requests: a search, and more behind a button. */
import type { EventFilter } from '../../client/index.ts'
import { field } from '../components.ts'
import { el } from '../dom.ts'

/** A pause of this length ends the typing of a word. */
const TYPING_MS = 250
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

export type FilterForm = {
  element: HTMLElement
  search: HTMLInputElement
  /** Empties every field. */
  clear(): void
}

/** @param onChange is called with the filter each time that it changes. */
export function filterForm(onChange: (query: EventFilter) => unknown): FilterForm {
  const q = el('input', {
    type: 'search',
    maxlength: '120',
    autocomplete: 'off',
    placeholder: 'Search',
    'aria-label': 'Search',
    'aria-keyshortcuts': '/',
  })
  const type = el('input', {
    type: 'search',
    maxlength: '255',
    autocomplete: 'off',
    placeholder: 'application/json',
  })
  const method = choice(['', ...METHODS])
  const access = choice(['', 'public', 'authenticated'])
  const summary = el('summary', { class: 'button small' }, 'Filters')
  let typing: ReturnType<typeof setTimeout> | undefined
  const changed = (): void => {
    clearTimeout(typing)
    typing = setTimeout(apply, TYPING_MS)
  }
  const apply = (): void => {
    clearTimeout(typing)
    const { q: _, ...others } = query()
    const used = Object.keys(others).length
    summary.textContent = used === 0 ? 'Filters' : `Filters (${used})`
    onChange(query())
  }
  const query = (): EventFilter => ({
    ...(q.value === '' ? {} : { q: q.value }),
    ...(type.value.trim() === '' ? {} : { contentType: type.value.trim() }),
    ...(method.value === '' ? {} : { method: method.value }),
    ...(access.value === 'public' || access.value === 'authenticated'
      ? { access: access.value }
      : {}),
  })
  const element = el(
    'search',
    { class: 'filters', oninput: changed },
    q,
    el(
      'details',
      {},
      summary,
      el(
        'div',
        { class: 'more-filters' },
        field('Method', method),
        field('Access', access),
        field('Content type', type),
      ),
    ),
  )
  return {
    element,
    search: q,
    clear() {
      for (const each of [q, type, method, access]) each.value = ''
      apply()
    },
  }
}

function choice(values: readonly string[]): HTMLSelectElement {
  const options = values.map((value) => el('option', { value }, value === '' ? 'any' : value))
  return el('select', {}, ...options)
}
