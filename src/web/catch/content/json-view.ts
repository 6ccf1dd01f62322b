/** JSON in colours, with lines that fold. Its tokens are shown as they were sent. */
import { button } from '../../components.ts'
import { el, fill } from '../../dom.ts'
import { plainly } from '../../foreign.ts'
import { count } from '../../format.ts'
import { type JsonLine, jsonLines, type Token } from './json-lines.ts'
import { foldedText } from './table.ts'

/** As many lines as a phone lays out without a pause, and as many characters. */
const LINES_AT_ONCE = 2_000
const CHARACTERS_AT_ONCE = 100_000
/** Deeper lines are indented no further. */
const MAX_INDENTS = 40
/** A longer string is folded. */
const MAX_STRING_CHARACTERS = 300

type Shown = { element: HTMLElement; line: JsonLine; fold: HTMLButtonElement | null }

/** @param text valid JSON. */
export function jsonView(text: string, label: string): HTMLElement {
  const lines = jsonLines(text)
  let next = lines.next()
  const shown: Shown[] = []
  const code = el('code', { onkeydown: (event) => moveFocus(event as KeyboardEvent) })
  const cut = el('p', { class: 'small quiet row' })
  showMore()

  function showMore(): void {
    let characters = 0
    const end = shown.length + LINES_AT_ONCE
    while (!next.done && shown.length < end && characters < CHARACTERS_AT_ONCE) {
      const added = lineElement(next.value, { isFirst: shown.length === 0, onFold: hideFolded })
      for (const { text: token } of next.value.tokens) characters += token.length
      shown.push(added)
      code.append(added.element)
      next = lines.next()
    }
    hideFolded()
    cut.hidden = next.done === true
    fill(
      cut,
      `The first ${count(shown.length)} lines; the rest is in the download.`,
      button('Show more', showMore, { kind: 'small' }),
    )
  }

  /** Hides the lines inside of folded brackets. */
  function hideFolded(): void {
    let within: number | null = null
    for (const { element, line, fold } of shown) {
      if (within !== null && line.closes && line.depth === within) within = null
      element.hidden = within !== null
      if (within === null && fold?.getAttribute('aria-expanded') === 'false') within = line.depth
    }
    const folds = shown.filter(({ element, fold }) => fold && !element.hidden)
    // One stop for the keyboard: a long text would have thousands. The arrows reach the others.
    for (const [index, { fold }] of folds.entries()) if (fold) fold.tabIndex = index === 0 ? 0 : -1
  }

  function moveFocus(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const folds = shown.flatMap(({ element, fold }) => (fold && !element.hidden ? [fold] : []))
    const at = folds.indexOf(document.activeElement as HTMLButtonElement)
    if (step === undefined || at === -1) return
    event.preventDefault()
    // The list has keys of its own.
    event.stopPropagation()
    folds[at + step]?.focus()
  }

  return el(
    'div',
    { class: 'stack' },
    cut,
    el('pre', { class: 'content json', tabindex: '0', role: 'group', 'aria-label': label }, code),
  )
}

/** A line ends with its line end, so that what is copied is JSON again, and a hidden line leaves none. */
function lineElement(
  line: JsonLine,
  { isFirst, onFold }: { isFirst: boolean; onFold: () => void },
): Shown {
  const fold = line.opens ? foldButton(onFold) : null
  const start = `${isFirst ? '' : '\n'}${'  '.repeat(Math.min(line.depth, MAX_INDENTS))}`
  const element = el('span', { class: 'line' }, start, fold, ...line.tokens.flatMap(tokenNodes))
  return { element, line, fold }
}

function foldButton(onFold: () => void): HTMLButtonElement {
  const fold = el('button', {
    type: 'button',
    class: 'fold',
    'aria-label': 'Fold',
    'aria-expanded': 'true',
    tabindex: '-1',
    onclick: () => {
      fold.setAttribute('aria-expanded', String(fold.getAttribute('aria-expanded') === 'false'))
      onFold()
    },
  })
  return fold
}

function tokenNodes({ kind, text }: Token): (Node | string)[] {
  if (kind === 'sign') return [text]
  const isLong = text.length > MAX_STRING_CHARACTERS
  return [
    el('span', { class: `json-${kind}` }, ...(isLong ? foldedText(text, 'link') : [plainly(text)])),
  ]
}
