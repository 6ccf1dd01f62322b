/** A table of a stranger's names and values. Long values are folded, and what is searched for is marked. */
import { createContext } from 'preact'
import { useContext, useState } from 'preact/hooks'
import { plainly } from '../lib/foreign.ts'
import { count } from '../lib/format.ts'
import { CopyButton } from '../ui/copy.tsx'

/** The most rows of a table. */
const MAX_ROWS = 500
/** A longer value would push the others out of sight, so it is folded. */
const MAX_VALUE_CHARACTERS = 300
/** Nobody looks at more marks in one text. */
const MAX_MARKS = 200

/** The text that is searched for, in lower case; empty if there is none. */
export const Searched = createContext('')

/** A stranger's text, with its invisible characters written out and what is searched for marked. */
export function Marked({ text }: { text: string }) {
  const wanted = useContext(Searched)
  const shown = plainly(text)
  if (wanted === '' || wanted.length > text.length) return <>{shown}</>
  const lower = shown.toLowerCase()
  const parts = []
  let at = 0
  for (let marks = 0; marks < MAX_MARKS; marks++) {
    const found = lower.indexOf(wanted, at)
    if (found === -1) break
    parts.push(shown.slice(at, found), <mark>{shown.slice(found, found + wanted.length)}</mark>)
    at = found + wanted.length
  }
  return <>{[...parts, shown.slice(at)]}</>
}

/** A table of names and values, such as headers. */
export function PairsTable({
  label,
  pairs,
}: {
  label: string
  pairs: readonly (readonly [string, string])[]
}) {
  return (
    <table class="sent" aria-label={label}>
      {pairs.length > MAX_ROWS && (
        <caption>{`The first ${count(MAX_ROWS)} of ${count(pairs.length)}.`}</caption>
      )}
      <tbody>
        {pairs.slice(0, MAX_ROWS).map(([name, value], index) => (
          <tr key={index}>
            <th scope="row">
              <Marked text={name} />
            </th>
            <td>
              <Folded text={value} />
            </td>
            <td class="copies">
              <CopyButton text={value} label={`Copy the value of ${plainly(name.slice(0, 100))}`} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Shows the beginning of a long text, and all of it after a press. */
export function Folded({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(text.length <= MAX_VALUE_CHARACTERS)
  return (
    <>
      <code>
        <Marked text={isWhole ? text : text.slice(0, MAX_VALUE_CHARACTERS)} />
      </code>
      {!isWhole && (
        <button type="button" class="link unfold" onClick={() => setWhole(true)}>
          {`Show all ${count(text.length)} characters`}
        </button>
      )}
    </>
  )
}
