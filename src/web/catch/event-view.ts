/** Shows one request of an inbox. */
import { eventBody, toCurl } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { button, copyButton, download } from '../components.ts'
import { type Child, el } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { moment } from '../format.ts'
import { disclosure, showLate } from '../late.ts'
import { bodyView } from './body.ts'
import { pairsTable } from './content/table.ts'

/** A longer path would push the request out of sight, so it is cut. */
const MAX_TITLE_CHARACTERS = 120
/** Headers that known senders sign with. `mayfly/client` knows them, too, and is loaded when it is needed. */
const SIGNED =
  /^(?:x-hub-signature-256|stripe-signature|x-slack-signature|x-shopify-hmac-sha256|(?:webhook|svix)-signature)$/i

export type EventActions = {
  /** The address of the inbox, for commands that send the request again. */
  ingestUrl: string
  onDelete: () => unknown
  onBack: () => unknown
  /** The other requests that are loaded, newest first, to compare this one with. */
  others?: (() => readonly CatchEvent[]) | undefined
}

export function eventView(
  event: CatchEvent,
  { ingestUrl, onDelete, onBack, others }: EventActions,
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
    ...tools(event, { ingestUrl, others }),
    isLong && section('Path', el('p', { class: 'long' }, el('code', {}, plainly(path)))),
    event.query !== '' &&
      section('Query', pairsTable('Query', [...new URLSearchParams(event.query)])),
    headersSection(event),
    origin(event),
  )
}

/** Says whether the sender was authenticated. */
export function accessBadge({ access }: CatchEvent): HTMLElement {
  return el('span', { class: access === 'authenticated' ? 'badge good' : 'badge' }, access)
}

/** What some readers need: each part is loaded when it is opened. */
function tools(
  event: CatchEvent,
  { ingestUrl, others }: Pick<EventActions, 'ingestUrl' | 'others'>,
): HTMLElement[] {
  const copy = disclosure('Copy as code', async () => {
    const { snippetsView } = await import('./snippets-view.ts')
    return snippetsView(event, ingestUrl)
  })
  const isSigned = event.headers.some(({ name }) => SIGNED.test(name))
  const signature = disclosure(
    'Is the signature right?',
    async () => {
      const { signatureForm } = await import('./signature-form.ts')
      return signatureForm(event)
    },
    { isOpen: isSigned },
  )
  if (!others) return [copy, signature]
  const comparison = disclosure('Compare with another request', async () => {
    const { comparisonView } = await import('./comparison-view.ts')
    return comparisonView(event, others)
  })
  return [copy, signature, comparison]
}

function bodySection(event: CatchEvent): HTMLElement {
  if (event.bodyBytes === 0) return section('Body', el('p', { class: 'quiet' }, 'Empty.'))
  return section('Body', bodyView(event))
}

function headersSection({ headers }: CatchEvent): HTMLElement {
  const lines = (): string => headers.map(({ name, value }) => `${name}: ${value}\n`).join('')
  return el(
    'section',
    { class: 'stack' },
    el(
      'div',
      { class: 'row between' },
      el('h3', {}, `Headers (${headers.length})`),
      copyButton(lines, { label: 'Copy headers', kind: 'small' }),
    ),
    pairsTable(
      'Headers',
      headers.map(({ name, value }) => [name, value] as const),
    ),
  )
}

function origin({ ipLocation }: CatchEvent): HTMLElement | null {
  if (!ipLocation) return null
  const { latitude, longitude, city, country, source } = ipLocation
  const name = [city, country].filter((part) => part !== null).join(', ') || 'Somewhere'
  return section(
    'Origin',
    el('p', {}, `${name}, as far as the address tells (${source}).`),
    latitude !== null &&
      longitude !== null &&
      showLate(async () => {
        const { worldMap } = await import('./world.ts')
        return el('div', {}, worldMap({ latitude, longitude }, `A map with a spot on ${name}`))
      }),
  )
}

function section(title: string, ...parts: Child[]): HTMLElement {
  return el('section', { class: 'stack' }, el('h3', {}, title), ...parts)
}

function save(event: CatchEvent): void {
  // The page only saves the body and never opens it, because a stranger sent it.
  download(`${event.id}.bin`, eventBody(event), 'application/octet-stream')
}
