/** A unit as engines run it: its statements in a row, and what they returned by name again. */
import type { Answer, Row, Statement, Unit } from './db.ts'

type Named = Unit['statements']

/** The statements in the order in which they run. */
export function inARow(named: Named): Statement[] {
  const statements: Statement[] = []
  for (const name in named) {
    const part = named[name] as Statement | Statement[]
    if (Array.isArray(part)) statements.push(...part)
    else statements.push(part)
  }
  return statements
}

/** What each statement returned, by name; without `results`, none returned a row. */
export function byName(named: Named, results: Row[][] | null): Answer {
  const answer: Answer = {}
  let at = 0
  for (const name in named) {
    const part = named[name] as Statement | Statement[]
    if (results === null) answer[name] = []
    else if (!Array.isArray(part)) answer[name] = results[at++] ?? []
    else {
      answer[name] = results.slice(at, at + part.length).flat()
      at += part.length
    }
  }
  return answer
}

/** The name of the statement at this place. */
export function nameAt(named: Named, place: number): string {
  let end = 0
  for (const name in named) {
    const part = named[name] as Statement | Statement[]
    end += Array.isArray(part) ? part.length : 1
    if (place < end) return name
  }
  throw new Error(`the unit has no statement ${place}`)
}
