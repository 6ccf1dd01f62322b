/** Shows the body of a request in readable forms. */
import { eventBody } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { button } from '../components.ts'
import { el } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { count } from '../format.ts'

export type BodyForm = 'JSON' | 'Form' | 'Text' | 'Hex'

/** Only this much is drawn. The download has all of the body. */
const MAX_SHOWN_CHARACTERS = 200_000
const MAX_SHOWN_BYTES = 16 * 1024
/** The most rows of a table. */
const MAX_ROWS = 500
/** A longer value would push the others out of sight, so it is cut. */
const MAX_VALUE_CHARACTERS = 300
const HEX_COLUMNS = 16

/** The forms that fit this body, the best first. */
export function bodyForms(event: CatchEvent): BodyForm[] {
  if (event.bodyEncoding !== 'utf8') return ['Hex']
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(event.contentType ?? '')
  if (isForm) return ['Form', 'Text', 'Hex']
  return isJson(event.body) ? ['JSON', 'Text', 'Hex'] : ['Text', 'Hex']
}

/** The body in one form. It is always shown as text, never parsed as markup. */
export function bodyIn(form: BodyForm, event: CatchEvent): HTMLElement {
  switch (form) {
    case 'JSON':
      return content(indented(event.body))
    case 'Form':
      return pairsTable('Fields', [...new URLSearchParams(event.body)])
    case 'Text':
      return content(event.body)
    case 'Hex':
      return content(hexDump(eventBody(event).subarray(0, MAX_SHOWN_BYTES)), {
        kind: 'hex',
        isCut: event.bodyBytes > MAX_SHOWN_BYTES,
      })
  }
}

/** A table of names and values, such as headers. */
export function pairsTable(
  label: string,
  pairs: readonly (readonly [string, string])[],
): HTMLElement {
  const rows = pairs
    .slice(0, MAX_ROWS)
    .map(([name, value]) =>
      el('tr', {}, el('th', { scope: 'row' }, plainly(name)), el('td', {}, ...shownValue(value))),
    )
  return el(
    'table',
    { 'aria-label': label },
    pairs.length > MAX_ROWS &&
      el('caption', {}, `The first ${count(MAX_ROWS)} of ${count(pairs.length)}.`),
    el('tbody', {}, ...rows),
  )
}

/** Shows the beginning of a long value, and all of it after a click. */
function shownValue(value: string): HTMLElement[] {
  const code = el('code', {}, plainly(value.slice(0, MAX_VALUE_CHARACTERS)))
  if (value.length <= MAX_VALUE_CHARACTERS) return [code]
  const more = button(
    `Show all ${count(value.length)} characters`,
    () => {
      code.textContent = plainly(value)
      more.remove()
    },
    { kind: 'small' },
  )
  return [code, more]
}

function content(
  text: string,
  { kind = '', isCut = text.length > MAX_SHOWN_CHARACTERS } = {},
): HTMLElement {
  const shown = `${text.slice(0, MAX_SHOWN_CHARACTERS)}${isCut ? '\n… the rest is in the download' : ''}`
  return el(
    'pre',
    { class: `content ${kind}`, tabindex: '0', role: 'group', 'aria-label': 'Body' },
    el('code', {}, plainly(shown)),
  )
}

function isJson(text: string): boolean {
  const start = text.trimStart()[0]
  if (start !== '{' && start !== '[') return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A token of JSON: a string, a bracket, a comma, a colon, or any other word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g

/**
 * Indents JSON, up to the length that is drawn, because deeply nested brackets would be indented without
 * end. The tokens stay as they were sent: parsing would change numbers that a double cannot hold.
 */
function indented(text: string): string {
  let depth = 0
  let out = ''
  let last = ''
  for (const [token] of text.matchAll(TOKEN)) {
    const isFirst = last === '{' || last === '['
    const isEnd = token === '}' || token === ']'
    if (isEnd) depth--
    if (isEnd ? !isFirst : isFirst || last === ',') out += `\n${'  '.repeat(depth)}`
    out += token === ':' ? ': ' : token
    if (token === '{' || token === '[') depth++
    last = token
    if (out.length > MAX_SHOWN_CHARACTERS) break
  }
  return out
}

function hexDump(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += HEX_COLUMNS) {
    const row = [...bytes.subarray(at, at + HEX_COLUMNS)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row
      .map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '.'))
      .join('')
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(HEX_COLUMNS * 3 - 1)}  ${text}`)
  }
  return lines.join('\n')
}
