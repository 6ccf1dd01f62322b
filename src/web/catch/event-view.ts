/** Shows one request of an inbox. */
import { eventBody, toCurl } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { button, copyButton, download, tabs } from '../components.ts'
import { type Child, el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { bytes, moment } from '../format.ts'
import { bodyForms, bodyIn, pairsTable } from './body.ts'
import { worldMap } from './world.ts'

/** A longer path would push the request out of sight, so it is cut. */
const MAX_TITLE_CHARACTERS = 120

export type EventActions = {
  /** The address of the inbox, for the curl command. */
  ingestUrl: string
  onDelete: () => unknown
  onBack: () => unknown
}

export function eventView(
  event: CatchEvent,
  { ingestUrl, onDelete, onBack }: EventActions,
): HTMLElement {
  const path = event.path || '/'
  const isLong = path.length > MAX_TITLE_CHARACTERS
  return el(
    'article',
    { class: 'card stack', 'aria-labelledby': 'event-title' },
    button('Back to the list', onBack, { kind: 'small back' }),
    el(
      'h2',
      { id: 'event-title', tabindex: '-1' },
      el('span', { class: 'method' }, event.method),
      ` ${plainly(path.slice(0, MAX_TITLE_CHARACTERS))}${isLong ? '…' : ''}`,
    ),
    el(
      'p',
      { class: 'row small quiet' },
      accessBadge(event),
      el('time', { datetime: event.receivedAt }, moment(event.receivedAt)),
      el('span', {}, `#${event.sequence}`),
      el('span', {}, `from ${event.sourceIp}`),
    ),
    el(
      'div',
      { class: 'row' },
      copyButton(() => toCurl(event, { url: ingestUrl }), { label: 'Copy as curl', kind: 'small' }),
      event.bodyBytes > 0 && button('Download body', () => save(event), { kind: 'small' }),
      button('Delete', onDelete, { kind: 'small danger' }),
    ),
    bodySection(event),
    isLong && section('Path', el('p', { class: 'long' }, el('code', {}, plainly(path)))),
    event.query !== '' &&
      section('Query', pairsTable('Query', [...new URLSearchParams(event.query)])),
    section(
      `Headers (${event.headers.length})`,
      pairsTable(
        'Headers',
        event.headers.map(({ name, value }) => [name, value] as const),
      ),
    ),
    place(event),
  )
}

/** Says whether the sender was authenticated. */
export function accessBadge({ access }: CatchEvent): HTMLElement {
  return el('span', { class: access === 'authenticated' ? 'badge good' : 'badge' }, access)
}

function bodySection(event: CatchEvent): HTMLElement {
  if (event.bodyBytes === 0) return section('Body', el('p', { class: 'quiet' }, 'Empty.'))
  const forms = bodyForms(event)
  const [best = 'Hex'] = forms
  const shown = el('div', {}, bodyIn(best, event))
  const chooser = tabs('Form of the body', forms, {
    chosen: best,
    onChoose: (form) => fill(shown, bodyIn(form, event)),
  })
  return section(
    'Body',
    el(
      'div',
      { class: 'row between' },
      chooser,
      el(
        'span',
        { class: 'small quiet' },
        `${bytes(event.bodyBytes)} · ${plainly(event.contentType ?? 'no type')}`,
      ),
    ),
    shown,
  )
}

function place({ ipLocation }: CatchEvent): HTMLElement | null {
  if (!ipLocation) return null
  const { latitude, longitude, city, country, source } = ipLocation
  const name = [city, country].filter((part) => part !== null).join(', ') || 'Somewhere'
  return section(
    'Origin',
    el('p', {}, `${name}, as far as the address tells (${source}).`),
    latitude !== null &&
      longitude !== null &&
      el('div', {}, worldMap({ latitude, longitude }, `A map with a spot on ${name}`)),
  )
}

function section(title: string, ...parts: Child[]): HTMLElement {
  return el('section', { class: 'stack' }, el('h3', {}, title), ...parts)
}

function save(event: CatchEvent): void {
  // The page only saves the body and never opens it, because a stranger sent it.
  download(`${event.id}.bin`, eventBody(event), 'application/octet-stream')
}
