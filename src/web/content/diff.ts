/** What two lists of lines have in common, within bounds. */

export type Change = { kind: 'same' | 'removed' | 'added'; line: string }

/** The table of a comparison has the product of both lengths: this is 16 MB. */
const MAX_CELLS = 4_000_000

/** The changes from one to the other, the fewest possible; null if they are too long and too different. */
export function diffLines(before: readonly string[], after: readonly string[]): Change[] | null {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start++
  let end = 0
  const longest = Math.min(before.length, after.length) - start
  while (end < longest && before.at(-1 - end) === after.at(-1 - end)) end++
  const middle = longestCommon(
    before.slice(start, before.length - end),
    after.slice(start, after.length - end),
  )
  if (!middle) return null
  const same = (line: string): Change => ({ kind: 'same', line })
  return [
    ...before.slice(0, start).map(same),
    ...middle,
    ...before.slice(before.length - end).map(same),
  ]
}

function longestCommon(before: readonly string[], after: readonly string[]): Change[] | null {
  const width = after.length + 1
  if ((before.length + 1) * width > MAX_CELLS) return null
  // lengths[i * width + j]: the longest common subsequence of what begins at i and at j.
  const lengths = new Uint32Array((before.length + 1) * width)
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const changes: Change[] = []
  let i = 0
  let j = 0
  while (i < before.length || j < after.length) {
    const [old, fresh] = [before[i], after[j]]
    if (old !== undefined && old === fresh) {
      changes.push({ kind: 'same', line: old })
      i++
      j++
    } else if (old !== undefined && (fresh === undefined || at(i + 1, j) >= at(i, j + 1))) {
      changes.push({ kind: 'removed', line: old })
      i++
    } else {
      changes.push({ kind: 'added', line: fresh ?? '' })
      j++
    }
  }
  return changes
}
