/** Times in which nobody could reach the service. */

/** From the last sign that the service could be reached to the next one, in unix milliseconds. */
export type BlindWindow = { beganAt: number; endedAt: number }

/** The same times without overlaps, in their order. */
export function apart(windows: readonly BlindWindow[]): BlindWindow[] {
  const joined: BlindWindow[] = []
  for (const { beganAt, endedAt } of windows.toSorted((a, b) => a.beganAt - b.beganAt)) {
    const last = joined.at(-1)
    if (last && beganAt <= last.endedAt) last.endedAt = Math.max(last.endedAt, endedAt)
    else joined.push({ beganAt, endedAt })
  }
  return joined
}
