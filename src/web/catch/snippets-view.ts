/** A request as code that sends it again. */
import { toCurl } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { toFetch, toHttpie, toPython } from '../../client/snippets.ts'
import { codeBox, tabs } from '../components.ts'
import { el, fill } from '../dom.ts'

/** A longer command is copied and not drawn. */
const MAX_SHOWN_CHARACTERS = 20_000

const WRITERS = { curl: toCurl, fetch: toFetch, HTTPie: toHttpie, Python: toPython } as const
const NAMES = Object.keys(WRITERS) as (keyof typeof WRITERS)[]

export function snippetsView(event: CatchEvent, ingestUrl: string): HTMLElement {
  const shown = el('div', {})
  const show = (name: keyof typeof WRITERS): void => {
    const code = WRITERS[name](event, { url: ingestUrl })
    fill(
      shown,
      codeBox(code, {
        label: `the request for ${name}`,
        shown:
          code.length > MAX_SHOWN_CHARACTERS ? `${code.slice(0, MAX_SHOWN_CHARACTERS)}…` : code,
      }),
    )
  }
  show('curl')
  return el(
    'div',
    { class: 'stack' },
    tabs('Language', NAMES, { chosen: 'curl', onChoose: show }),
    shown,
  )
}
