/** Who is told of a monitor's changes or a whisper's reads: up to three destinations, their secrets, tests, and what was sent. */

import type { AlertsClient } from '../client/alerts.ts'
import { MayflyError } from '../client/errors.ts'
import type { AlertSettings, AlertsSet, AlertsStatus } from '../client/index.ts'
import {
  ALERT_FORMATS,
  type AlertFormat,
  URL_FORMATS,
  type UrlFormat,
} from '../lib/alert-formats.ts'
import { button, codeBox, confirmed, field, notice, toast } from './components.ts'
import { type Child, el, fill } from './dom.ts'
import { plainly } from './foreign.ts'
import { count, moment, sentence } from './format.ts'
import { attempt } from './live.ts'

type Destination = AlertSettings['destinations'][number]
type Shown = AlertsStatus['destinations'][number] & Partial<AlertsSet['destinations'][number]>

const MOST = 3
const labelOf = (format: AlertFormat): string =>
  format === 'inbox' ? 'An inbox here' : ALERT_FORMATS[format].label

const STATES: Record<Shown['state'], string> = {
  untested: 'Not told yet: no test has reached it',
  active: 'Is told',
  gone: 'Answered 410 and is not told any more',
}
const TESTS: Record<string, string> = {
  '2xx': 'The test arrived.',
  '4xx': 'It refused the test (4xx).',
  '5xx': 'It failed at the test (5xx).',
  failed: 'The test got no answer.',
  'no echo': 'It answered the test without its nonce, which the standard format asks for.',
}

/** @param hasEnded nobody can be set any more, but what was sent is shown. */
export async function alertsView(
  alerts: AlertsClient,
  { hasEnded = false }: { hasEnded?: boolean } = {},
): Promise<HTMLElement> {
  const current = el('div', { class: 'stack' })
  const problems = el('div', { class: 'problems', 'aria-live': 'assertive' })
  const form = destinationForms()

  async function refresh(): Promise<void> {
    show(await alerts.alerts())
  }

  function show({ destinations, deliveries }: AlertsStatus, set?: AlertsSet): void {
    const told = new Map(set?.destinations.map((each) => [each.id, each]))
    const shown: Shown[] = destinations.map((each) => ({ ...each, ...told.get(each.id) }))
    fill(
      current,
      ...(shown.length === 0
        ? [el('p', {}, 'Nobody is told yet.')]
        : [
            el('ol', { class: 'destinations' }, ...shown.map(destinationLine)),
            el(
              'div',
              { class: 'row' },
              shown.some(({ state }) => state !== 'active') && button('Test again', test),
              button('Look again', () => attempt(refresh)),
              button('Tell nobody', forget, { kind: 'danger' }),
            ),
            deliveryList(deliveries, shown),
          ]),
    )
  }

  async function test(): Promise<void> {
    await attempt(async () => {
      const set = await alerts.testAlerts()
      show(await alerts.alerts(), set)
    })
  }

  async function forget(): Promise<void> {
    const isWanted = await confirmed('Tell nobody any more?', {
      body: 'All destinations and their secrets are forgotten.',
      action: 'Tell nobody',
    })
    if (!isWanted) return
    await attempt(async () => {
      await alerts.deleteAlerts()
      await refresh()
    })
  }

  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    fill(problems)
    const destinations = form.destinations()
    if (destinations.length === 0) {
      fill(problems, notice('warn', el('p', {}, 'Give an address, or an inbox and its token.')))
      return
    }
    try {
      const set = await alerts.setAlerts({ destinations })
      form.clear()
      show(await alerts.alerts(), set)
      toast('Saved')
    } catch (error) {
      fill(problems, notice('bad', el('p', {}, refusalOf(error))))
    }
  }

  await refresh()
  if (hasEnded) {
    const why = el('p', { class: 'small quiet' }, 'It has ended, so no destination can be added.')
    return el('div', { class: 'stack' }, current, why)
  }
  return el(
    'div',
    { class: 'stack' },
    current,
    el(
      'form',
      { class: 'stack', novalidate: true, onsubmit: submit, 'aria-label': 'Destinations' },
      el('h3', {}, 'Set who is told'),
      el(
        'p',
        { class: 'small quiet' },
        `Up to ${MOST}, in place of those above. New ones are tested at once, and each gets a new secret.`,
      ),
      form.element,
      problems,
      el('button', { type: 'submit', class: 'button primary' }, 'Save and test'),
    ),
  )
}

function destinationLine({ host, format, state, secret, test }: Shown): HTMLElement {
  return el(
    'li',
    { class: 'stack' },
    el(
      'div',
      {},
      el('strong', {}, plainly(host)),
      el('div', { class: 'small quiet' }, `${labelOf(format)} · ${STATES[state]}`),
    ),
    test != null && el('p', { class: 'small' }, TESTS[test] ?? test),
    ...(secret == null
      ? []
      : [
          el(
            'p',
            { class: 'small' },
            'Its secret, with which it can check who sent a message. It is not shown again.',
          ),
          codeBox(secret, { label: `the secret of ${plainly(host)}`, isWrapped: true }),
        ]),
  )
}

function deliveryList(deliveries: AlertsStatus['deliveries'], shown: Shown[]): HTMLElement {
  const hosts = new Map(shown.map(({ id, host }) => [id, plainly(host)]))
  const lines = deliveries.map((each) => {
    const to = hosts.get(each.destinationId) ?? 'a destination of before'
    const tries = each.attempts > 1 ? ` after ${count(each.attempts)} tries` : ''
    const outcome = each.outcome === null ? 'waits' : `${each.outcome}${tries}`
    const next = each.nextTryAt === null ? '' : `, next try ${moment(each.nextTryAt)}`
    return el('li', {}, `${moment(each.happenedAt)}: ${each.type} to ${to}: ${outcome}${next}`)
  })
  return el(
    'details',
    {},
    el('summary', {}, `Sent in the last 24 hours: ${count(deliveries.length)}`),
    lines.length === 0
      ? el('p', { class: 'quiet' }, 'Nothing yet.')
      : el('ol', { class: 'number small', tabindex: '0', 'aria-label': 'Messages' }, ...lines),
  )
}

/** Three rows, of which those that are empty are left out. The next one appears when the one before is begun. */
function destinationForms() {
  const rows = Array.from({ length: MOST }, (_, index) => destinationRow(index + 1, changed))
  const element = el('div', { class: 'stack' })

  function changed(): void {
    for (const [index, row] of rows.entries()) {
      row.element.hidden = index > 0 && row.isEmpty() && rows[index - 1]?.isEmpty() === true
    }
  }

  fill(element, ...rows.map((row) => row.element))
  changed()
  return {
    element,
    destinations: (): Destination[] => rows.flatMap((row) => row.destination()),
    clear(): void {
      for (const row of rows) row.clear()
      changed()
    },
  }
}

function destinationRow(number: number, onChange: () => void) {
  const plain = { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' }
  const address = el('input', {
    ...plain,
    type: 'url',
    id: `alert-${number}-url`,
    placeholder: 'https://…',
  })
  const inbox = el('input', {
    ...plain,
    type: 'text',
    id: `alert-${number}-inbox`,
    placeholder: 'catch_…',
  })
  const token = el('input', {
    ...plain,
    type: 'password',
    id: `alert-${number}-token`,
    placeholder: 'catch_ingest_…',
  })
  const format = el(
    'select',
    { id: `alert-${number}-format` },
    ...[...URL_FORMATS, 'inbox' as const].map((value) => el('option', { value }, labelOf(value))),
  )
  const fields = el('div', { class: 'pairs' })
  for (const input of [address, inbox]) input.addEventListener('input', onChange)
  format.addEventListener('change', show)

  const isInbox = (): boolean => (format.value as AlertFormat) === 'inbox'
  const value = (): string => (isInbox() ? inbox : address).value.trim()

  function show(): void {
    const parts: Child[] = isInbox()
      ? [field('Inbox', inbox), field('Its ingest token', token)]
      : [field('Address', address)]
    fill(fields, field('Format', format), ...parts)
    onChange()
  }

  const element = el(
    'fieldset',
    { class: 'stack' },
    el('legend', { class: 'small' }, `Destination ${number}`),
    fields,
  )
  fill(fields, field('Format', format), field('Address', address))
  return {
    element,
    isEmpty: () => value() === '',
    destination(): Destination[] {
      if (value() === '') return []
      return isInbox()
        ? [{ inbox: value(), ingestToken: token.value.trim() }]
        : [{ url: value(), format: format.value as UrlFormat }]
    },
    clear(): void {
      for (const input of [address, inbox, token]) input.value = ''
    },
  }
}

function refusalOf(error: unknown): string {
  if (!(error instanceof MayflyError)) return sentence(error)
  if (error.phrase === 'alerts unavailable') {
    return 'The operator of this service sends no alerts. Nothing was changed.'
  }
  if (error.phrase !== 'invalid destinations') return sentence(error)
  return `Nothing was changed. What is needed: ${plainly(String(error.expected ?? 'https addresses, or inboxes with their ingest tokens'))}.`
}
