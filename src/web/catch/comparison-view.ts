/** Compares a request with another one, line by line. */
import { eventBody } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { field } from '../components.ts'
import { el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { count, moment } from '../format.ts'
import { textOf } from './content/charset.ts'
import { type Change, diffLines } from './content/diff.ts'
import { jsonLines } from './content/json-lines.ts'
import { mediaOf } from './content/media.ts'

/** Nobody finds one of more in a menu. */
const MAX_OTHERS = 100
const MAX_PATH_CHARACTERS = 60
/** Lines that did not change, before and after one that did. */
const CONTEXT = 2
const MAX_SHOWN_LINES = 1_000
const MAX_LINE_CHARACTERS = 1_000
const MAX_BODY_CHARACTERS = 1_000_000

export function comparisonView(
  event: CatchEvent,
  others: () => readonly CatchEvent[],
): HTMLElement {
  const choices = others()
    .filter(({ id }) => id !== event.id)
    .slice(0, MAX_OTHERS)
  if (choices.length === 0) {
    return el('p', { class: 'quiet' }, 'There is no other request in the list.')
  }
  // What usually is asked: what is new since the one before?
  const before = choices.find(({ sequence }) => sequence < event.sequence) ?? choices[0]
  const select = el(
    'select',
    { id: 'compared', onchange: () => show() },
    ...choices.map((other) => el('option', { value: other.id }, titleOf(other))),
  )
  select.value = before?.id ?? ''
  const shown = el('div', {})
  function show(): void {
    const other = choices.find(({ id }) => id === select.value)
    fill(shown, other && comparison(other, event))
  }
  show()
  return el('div', { class: 'stack' }, field('The other request', select), shown)
}

function titleOf({ sequence, method, path, receivedAt }: CatchEvent): string {
  const shown = plainly((path || '/').slice(0, MAX_PATH_CHARACTERS))
  return `#${sequence} ${method} ${shown}, ${moment(receivedAt)}`
}

function comparison(before: CatchEvent, after: CatchEvent): HTMLElement {
  const parts: [name: string, changes: Change[] | string][] = [
    ['request', diffLines([requestLine(before)], [requestLine(after)]) ?? []],
    ['headers', diffLines(headerLines(before), headerLines(after)) ?? 'Too many to compare.'],
    ['body', bodyChanges(before, after)],
  ]
  const same = parts.filter(([, changes]) => !isChanged(changes)).map(([name]) => name)
  const lines = parts.flatMap(([, changes]) =>
    isChanged(changes) && typeof changes !== 'string'
      ? [...withContext(changes), el('br', {})]
      : [],
  )
  const remarks = parts.flatMap(([, changes]) => (typeof changes === 'string' ? [changes] : []))
  return el(
    'div',
    { class: 'stack' },
    el(
      'p',
      { role: 'status' },
      same.length === parts.length
        ? 'Method, path, headers and body are the same.'
        : `− is in #${before.sequence}, + is in #${after.sequence}.${same.length > 0 ? ` The same: ${same.join(', ')}.` : ''}`,
    ),
    ...remarks.map((remark) => el('p', {}, remark)),
    lines.length > 0 &&
      el(
        'pre',
        { class: 'content diff', tabindex: '0', role: 'group', 'aria-label': 'Differences' },
        el('code', {}, ...lines),
      ),
  )
}

const isChanged = (changes: Change[] | string): boolean =>
  typeof changes === 'string' || changes.some(({ kind }) => kind !== 'same')

const requestLine = ({ method, path, query }: CatchEvent): string =>
  `${method} ${path || '/'}${query === '' ? '' : `?${query}`}`

/** Sorted by name: proxies change the order. */
function headerLines({ headers }: CatchEvent): string[] {
  return headers.map(({ name, value }) => `${name.toLowerCase()}: ${value}`).sort()
}

function bodyChanges(before: CatchEvent, after: CatchEvent): Change[] | string {
  if (before.bodySha256 === after.bodySha256) return []
  const [old, fresh] = [bodyLines(before), bodyLines(after)]
  if (!old || !fresh)
    return 'The bodies differ. They are not both text of a size that is compared here.'
  return diffLines(old, fresh) ?? 'The bodies differ in too many lines to compare them here.'
}

/** JSON as it is shown; any other text as it was sent. */
function bodyLines(event: CatchEvent): string[] | null {
  if (event.bodyBytes > MAX_BODY_CHARACTERS) return null
  const text = textOf(eventBody(event), mediaOf(event.contentType))?.text
  if (text === undefined) return null
  try {
    JSON.parse(text)
  } catch {
    return text.split(/\r?\n/)
  }
  return Array.from(
    jsonLines(text),
    ({ depth, tokens }) =>
      '  '.repeat(Math.min(depth, 40)) + tokens.map((token) => token.text).join(''),
  )
}

const SIGNS = { same: ' ', removed: '−', added: '+' }

/** The changed lines and those around them. */
function withContext(changes: readonly Change[]): HTMLElement[] {
  const isNear = changes.map(() => false)
  for (const [index, { kind }] of changes.entries()) {
    if (kind === 'same') continue
    for (let i = index - CONTEXT; i <= index + CONTEXT; i++) if (i in isNear) isNear[i] = true
  }
  const lines: HTMLElement[] = []
  let skipped = 0
  for (const [index, change] of changes.entries()) {
    if (!isNear[index]) {
      skipped++
      continue
    }
    if (skipped > 0) lines.push(skip(skipped))
    skipped = 0
    if (lines.length >= MAX_SHOWN_LINES) {
      return [...lines, skip(changes.length - index)]
    }
    const { kind, line } = change
    const isLong = line.length > MAX_LINE_CHARACTERS
    const text = `${plainly(line.slice(0, MAX_LINE_CHARACTERS))}${isLong ? '…' : ''}`
    const tag = kind === 'same' ? 'span' : kind === 'added' ? 'ins' : 'del'
    lines.push(el(tag, {}, `${SIGNS[kind]} ${text}\n`))
  }
  if (skipped > 0) lines.push(skip(skipped))
  return lines
}

const skip = (lines: number): HTMLElement =>
  el('span', { class: 'quiet' }, `  … ${count(lines)} ${lines === 1 ? 'line' : 'lines'}\n`)
