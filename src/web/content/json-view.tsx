/** JSON in colours. */
import { Marked } from './table.tsx'

/** A longer text is drawn without colours, because thousands of elements are slow. */
const MAX_COLOURED_CHARACTERS = 100_000

/** A name with its colon, a string, a number, or a word. */
const COLOURED = /("(?:[^"\\]|\\.)*"(?=:)|"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)/

export function Json({ text }: { text: string }) {
  if (text.length > MAX_COLOURED_CHARACTERS) return <Marked text={text} />
  const parts = text.split(COLOURED)
  return (
    <>
      {parts.map((part, at) =>
        at % 2 === 0 ? (
          part
        ) : (
          <span key={at} class={kindOf(part, parts[at + 1])}>
            <Marked text={part} />
          </span>
        ),
      )}
    </>
  )
}

function kindOf(token: string, next: string | undefined): string {
  if (!token.startsWith('"')) return 'json-word'
  return next?.startsWith(':') ? 'json-name' : 'json-string'
}
