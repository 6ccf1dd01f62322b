/** Tables of the documents, for the tests that ask a server for each of their cells. */

/** The tables of a text: an entry for each state of each row, with the row's cells by their columns. */
export function tablesOf(
  text: string,
): { state: string; cells: [column: string, cell: string][] }[][] {
  return text.split('\n\n').flatMap((block) => {
    if (!block.startsWith('|')) return []
    const [head = [], , ...rows] = block
      .trim()
      .split('\n')
      .map((line) =>
        line
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      )
    return [
      rows.flatMap(([states = '', ...cells]) =>
        states.split('; ').map((state) => ({
          state,
          cells: cells.map((_, i): [string, string] => [head[i + 1] ?? '', answerAt(cells, i)]),
        })),
      ),
    ]
  })
}

/** An empty cell has the answer of the nearest one to its left. */
function answerAt(cells: string[], i: number): string {
  return cells.slice(0, i + 1).findLast((cell) => cell !== '') ?? ''
}
