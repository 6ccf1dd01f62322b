/** Converts a unit to the flat list of statements that engines run, and their results back to names. */
import type { Answer, Row, Statement, Unit } from './db.ts'

type Named = Unit['statements']

/** The statements in the order in which they run. */
export const inARow = (named: Named): Statement[] => Object.values(named).flat()

/** The rows that each statement returned, by name. Null `results` mean that no statement returned a row. */
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

/** The name of the statement at this index. */
export function nameAt(named: Named, place: number): string {
  let end = 0
  for (const name in named) {
    const part = named[name] as Statement | Statement[]
    end += Array.isArray(part) ? part.length : 1
    if (place < end) return name
  }
  throw new Error(`the unit has no statement ${place}`)
}
