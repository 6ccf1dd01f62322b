/** The parts of an answer that most tests compare. */
export type Answer = { status: number; text: string }

export const UNAUTHORIZED: Answer = { status: 401, text: '{"error":"unauthorized"}' }
export const NOT_FOUND: Answer = { status: 404, text: '{"error":"not found"}' }

/** Reads an answer to its end. */
export async function answerOf(response: Response): Promise<Answer> {
  return { status: response.status, text: phraseIn(response.status, await response.text()) }
}

/**
 * The body of a refusal with its phrase alone. A 400 also says which field is wrong, which
 * `test/api/faults-told.test.ts` pins for all.
 */
export function phraseIn(status: number, text: string): string {
  if (status !== 400) return text
  const { field: _field, expected: _expected, ...body } = JSON.parse(text)
  return JSON.stringify(body)
}

/** A refusal in short, such as `404 not found`. */
export const phraseOf = ({ status, text }: Answer): string => `${status} ${JSON.parse(text).error}`
