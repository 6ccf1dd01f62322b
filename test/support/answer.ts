/** The parts of an answer that most tests compare. */
export type Answer = { status: number; text: string }

export const UNAUTHORIZED: Answer = { status: 401, text: '{"error":"unauthorized"}' }
export const NOT_FOUND: Answer = { status: 404, text: '{"error":"not found"}' }

/** Reads an answer to its end. */
export async function answerOf(response: Response): Promise<Answer> {
  return { status: response.status, text: await response.text() }
}
