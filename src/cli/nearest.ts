/** The name that somebody meant who has mistyped it. */

/** Two mistakes, and fewer in a short name: more would be another name. */
const MAX_MISTAKES = 2
const LETTERS_PER_MISTAKE = 3

/** The name with the fewest mistakes between, or null if none is near enough. */
export function nearestOf(text: string, names: readonly string[]): string | null {
  const most = Math.min(MAX_MISTAKES, Math.floor(text.length / LETTERS_PER_MISTAKE))
  const near = names
    .map((name) => ({ name, mistakes: mistakesBetween(text, name) }))
    .filter(({ mistakes }) => mistakes <= most)
    .sort((one, other) => one.mistakes - other.mistakes)
  return near[0]?.name ?? null
}

/** How many letters are missing, too many, wrong, or swapped with the next. */
function mistakesBetween(one: string, other: string): number {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    for (let j = 1; j <= other.length; j++) {
      const [above = [], before = []] = [rows[i - 1], rows[i - 2]]
      const isSame = one[i - 1] === other[j - 1]
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      row[j] = Math.min(
        (above[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (above[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    rows.push(row)
  }
  return rows[one.length]?.[other.length] ?? 0
}
