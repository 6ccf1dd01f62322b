/** A table of a stranger's names and values. Long values are folded. */
import { button, copyButton } from '../../components.ts'
import { el } from '../../dom.ts'
import { plainly } from '../../foreign.ts'
import { count } from '../../format.ts'

/** The most rows of a table. */
const MAX_ROWS = 500
/** A longer value would push the others out of sight, so it is folded. */
const MAX_VALUE_CHARACTERS = 300

/** A table of names and values, such as headers. */
export function pairsTable(
  label: string,
  pairs: readonly (readonly [string, string])[],
): HTMLElement {
  const rows = pairs.slice(0, MAX_ROWS).map(([name, value]) => {
    const copy = copyButton(() => value, { kind: 'small' })
    copy.setAttribute('aria-label', `Copy the value of ${plainly(name.slice(0, 100))}`)
    return el(
      'tr',
      { role: 'row' },
      el('th', { scope: 'row', role: 'rowheader' }, plainly(name)),
      el('td', { role: 'cell' }, ...foldedText(value)),
      el('td', { role: 'cell', class: 'copies' }, copy),
    )
  })
  // On a narrow screen the rows are laid out as a grid, and would be no table to a screen reader without the roles.
  return el(
    'table',
    { class: 'sent', role: 'table', 'aria-label': label },
    pairs.length > MAX_ROWS &&
      el('caption', {}, `The first ${count(MAX_ROWS)} of ${count(pairs.length)}.`),
    el('tbody', { role: 'rowgroup' }, ...rows),
  )
}

/** Shows the beginning of a long text, and all of it after a click. `kind` is how the button looks. */
export function foldedText(text: string, kind: 'small' | 'link' = 'small'): HTMLElement[] {
  const code = el('code', {}, plainly(text.slice(0, MAX_VALUE_CHARACTERS)))
  if (text.length <= MAX_VALUE_CHARACTERS) return [code]
  const more = button(
    `Show all ${count(text.length)} characters`,
    () => {
      code.textContent = plainly(text)
      more.remove()
    },
    { kind: `${kind} unfold` },
  )
  return [code, more]
}
