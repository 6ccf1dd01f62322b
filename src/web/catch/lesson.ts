/** How to send a first request. Shown while the inbox is empty. */
import type { CatchRefusals, CatchStatus } from '../../client/index.ts'
import { button, codeBox, toast } from '../components.ts'
import { el, fill } from '../dom.ts'
import { attempt } from '../live.ts'
import { refusalsView } from './refusals-view.ts'

export type Lesson = {
  element: HTMLElement
  show(status: CatchStatus, refusals: CatchRefusals): void
}

export function createLesson(ingestUrl: string): Lesson {
  const steps = stepsView(ingestUrl)
  const refused = el('div', {})
  const title = el('h2', {})
  return {
    element: el('div', { class: 'card stack' }, title, refused, steps),
    show(status, refusals) {
      const isActive = status.status === 'active'
      title.textContent = isActive ? 'Waiting for requests' : 'No requests are kept here'
      steps.hidden = !isActive
      fill(refused, refusalsView(refusals, status))
    },
  }
}

function stepsView(ingestUrl: string): HTMLElement {
  const example = `curl --json '{"hello":"world"}' ${ingestUrl}/first`
  return el(
    'div',
    { class: 'stack' },
    el(
      'p',
      {},
      'Give the address above to whatever sends webhooks. Each request shows up here at once.',
    ),
    el('div', { class: 'row' }, testButton(ingestUrl, 'primary')),
    el('p', {}, 'Or send one from a terminal:'),
    codeBox(example, { label: 'an example', isWrapped: true }),
    el(
      'p',
      { class: 'small quiet' },
      'Anything after the address is kept as the path. Senders with the ingest token, as Authorization: Bearer, are marked authenticated.',
    ),
  )
}

/** A button that sends a request to the inbox, like any sender would. It counts as one. */
export function testButton(ingestUrl: string, kind: string): HTMLElement {
  return button('Send a test request', () => attempt(() => send(ingestUrl)), { kind })
}

async function send(ingestUrl: string): Promise<void> {
  const answer = await fetch(`${ingestUrl}/test`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ hello: 'world', sentFrom: 'this page' }),
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  })
  if (answer.ok) return
  toast(
    answer.status === 429
      ? 'Refused: too many requests at once. Try again in a minute.'
      : 'The inbox refused it: it is full, suspended or over.',
  )
}
