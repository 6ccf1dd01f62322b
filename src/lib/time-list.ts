/** Times of a row in one column of text, newest first, so that a unit changes one row and no other. */

/** Unix milliseconds have 13 digits until the year 2286. */
export const TIME_DIGITS = 13

/** Unix milliseconds as the column has them. */
export const timeText = (unixMs: number): string => String(unixMs).padStart(TIME_DIGITS, '0')

/** The times of a column, in unix milliseconds, in its order. */
export function timesIn(text: string): number[] {
  return Array.from({ length: text.length / TIME_DIGITS }, (_, i) =>
    Number(text.slice(i * TIME_DIGITS, (i + 1) * TIME_DIGITS)),
  )
}
