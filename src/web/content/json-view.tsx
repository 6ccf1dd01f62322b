/** JSON in colours, with lines that fold. Its tokens are shown as they were sent. */
import { useRef, useState } from 'preact/hooks'
import { count } from '../lib/format.ts'
import { type JsonLine, jsonLines, type Token } from './json-lines.ts'
import { Folded, Marked } from './table.tsx'

/** As many lines as a phone lays out without a pause, and as many characters. */
const LINES_AT_ONCE = 2_000
const CHARACTERS_AT_ONCE = 100_000
/** Deeper lines are indented no further. */
const MAX_INDENTS = 40
/** A longer string is folded. */
const MAX_STRING_CHARACTERS = 300

/** @param text valid JSON. */
export function JsonView({ text, label }: { text: string; label: string }) {
  const reading = useRef<ReturnType<typeof jsonLines>>(undefined)
  const [{ lines, isWhole }, setRead] = useState(() => more([]))
  const [folded, setFolded] = useState<ReadonlySet<number>>(new Set())

  function more(before: readonly JsonLine[]): { lines: readonly JsonLine[]; isWhole: boolean } {
    reading.current ??= jsonLines(text)
    const lines = [...before]
    let characters = 0
    while (lines.length < before.length + LINES_AT_ONCE && characters < CHARACTERS_AT_ONCE) {
      const { done, value } = reading.current.next()
      if (done) return { lines, isWhole: true }
      lines.push(value)
      for (const token of value.tokens) characters += token.text.length
    }
    return { lines, isWhole: false }
  }

  function fold(index: number): void {
    const next = new Set(folded)
    if (!next.delete(index)) next.add(index)
    setFolded(next)
  }

  const shown = visible(lines, folded)
  const firstFold = shown.find((index) => lines[index]?.opens)
  return (
    <>
      {!isWhole && (
        <p class="small quiet row">
          {`The first ${count(lines.length)} lines; the rest is in the download.`}
          <button type="button" class="btn quiet" onClick={() => setRead(more(lines))}>
            Show more
          </button>
        </p>
      )}
      <pre class="content json" tabIndex={0} role="group" aria-label={label}>
        <code onKeyDown={moveFocus}>
          {shown.map((index) => (
            <Line
              key={index}
              index={index}
              line={lines[index] as JsonLine}
              isFolded={folded.has(index)}
              isFirstFold={index === firstFold}
              onFold={fold}
            />
          ))}
        </code>
      </pre>
    </>
  )
}

/** The lines that are not inside of folded brackets. */
function visible(lines: readonly JsonLine[], folded: ReadonlySet<number>): number[] {
  const shown: number[] = []
  let within: number | null = null
  for (const [index, line] of lines.entries()) {
    if (within !== null && line.closes && line.depth === within) within = null
    if (within === null) shown.push(index)
    if (within === null && folded.has(index)) within = line.depth
  }
  return shown
}

/** A line begins with its line end, so that what is copied is JSON again. */
function Line({
  index,
  line: { depth, tokens, opens },
  isFolded,
  isFirstFold,
  onFold,
}: {
  index: number
  line: JsonLine
  isFolded: boolean
  isFirstFold: boolean
  onFold: (index: number) => void
}) {
  return (
    <span class="line">
      {`${index === 0 ? '' : '\n'}${'  '.repeat(Math.min(depth, MAX_INDENTS))}`}
      {opens && (
        <button
          type="button"
          class="fold"
          aria-label="Fold"
          aria-expanded={!isFolded}
          // One stop for the keyboard: a long text would have thousands. The arrows reach the others.
          tabIndex={isFirstFold ? 0 : -1}
          onClick={() => onFold(index)}
        />
      )}
      {tokens.map((token, at) => (
        <TokenView key={at} token={token} />
      ))}
    </span>
  )
}

function TokenView({ token: { kind, text } }: { token: Token }) {
  if (kind === 'sign') return <>{text}</>
  const isLong = text.length > MAX_STRING_CHARACTERS
  return (
    <span class={`json-${kind}`}>{isLong ? <Folded text={text} /> : <Marked text={text} />}</span>
  )
}

function moveFocus(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  const folds = [...event.currentTarget.querySelectorAll<HTMLElement>('.fold')]
  const at = folds.indexOf(document.activeElement as HTMLElement)
  if (step === undefined || at === -1) return
  event.preventDefault()
  // The list has keys of its own.
  event.stopPropagation()
  folds[at + step]?.focus()
}
