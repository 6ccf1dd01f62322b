/**
 * `node bench/pair.ts ROW [CHECKOUT …] [--engine postgres] [--rounds 5]`: runs a row on this checkout, on others,
 * and where it makes sense on the bare framework, a second each in turn, so that all meet the same machine.
 * `all` runs every row. Prints a table in Markdown.
 */
import { parseArgs } from 'node:util'
import { createCost } from './cost.ts'
import { type Engine, SQLITE, startPostgresEngine } from './engine.ts'
import type { Measured } from './load.ts'
import { PAIR_ROWS, type PairRow } from './pair-rows.ts'
import { HERE, type MayflyProgram, type Program, startBare, startMayfly } from './program.ts'

const { values, positionals } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    rounds: { type: 'string', default: '5' },
  },
  allowPositionals: true,
})
const [name = '', ...others] = positionals
const rows = Object.entries(PAIR_ROWS).filter(([some, { engine = values.engine }]) =>
  name === 'all' ? engine === values.engine : some === name,
)
if (rows.length === 0) {
  process.stderr.write(`Rows: all, ${Object.keys(PAIR_ROWS).join(', ')}\n`)
  process.exit(2)
}

type Runner = {
  what: string
  program: Program
  turn(): Promise<Measured>
  measured: Measured[]
  cost: ReturnType<typeof createCost>
  written: number
  memoryMib: number
}

const TABLE_HEAD =
  '| row | program | a second | p50 ms | p99 ms | CPU, service + store | kB written | MiB | errors |\n' +
  `${'|---'.repeat(9)}|\n`

const engine: Engine = values.engine === 'postgres' ? await startPostgresEngine() : SQLITE
try {
  process.stdout.write(TABLE_HEAD)
  for (const [some, row] of rows) {
    for (const one of await measure(row)) process.stdout.write(`| ${some} ${cellsOf(one)} |\n`)
  }
} finally {
  await engine.stop()
}

async function measure(row: PairRow): Promise<Runner[]> {
  const runners: Runner[] = []
  const endings: (() => Promise<unknown>)[] = []
  try {
    for (const checkout of [HERE, ...others]) {
      const program = await startMayfly(engine, row.environment ?? {}, { checkout })
      runners.push(
        runner(checkout, program, await row.prepare(program, { engine, checkout, endings })),
      )
    }
    if (row.bare) {
      const program = await startBare()
      runners.push(runner('bare', program, row.bare(program)))
    }
    for (const { turn } of runners) await turn()
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const one of runners) {
        const before = one.program.writtenBytes()
        one.measured.push(await one.cost.during(one.turn))
        one.written += one.program.writtenBytes() - before
      }
    }
    for (const one of runners) one.memoryMib = one.program.memoryMib()
    return runners
  } finally {
    for (const end of endings) await end()
    for (const { program } of runners) await program.stop()
  }
}

function runner(what: string, program: Program | MayflyProgram, turn: Runner['turn']): Runner {
  const cost = createCost([program.cpuMs, engine.cpuMs])
  return { what, program, turn, measured: [], cost, written: 0, memoryMib: 0 }
}

/** Rate, latencies and their ranges are over the rounds; CPU and bytes are an answer's. */
function cellsOf({ what, measured, cost, written, memoryMib }: Runner): string {
  const count = measured.reduce((sum, one) => sum + one.count, 0)
  const errors = measured.reduce((sum, one) => sum + one.errors, 0)
  const spread = (key: 'perSecond' | 'p50' | 'p99'): string => {
    const sorted = measured.map((one) => one[key]).toSorted((a, b) => a - b)
    return `${sorted[Math.floor(sorted.length / 2)]} (${sorted[0]} to ${sorted.at(-1)})`
  }
  const kilobytes = (written / count / 1000).toFixed(2)
  return [
    ...['', what, spread('perSecond'), spread('p50'), spread('p99'), cost.line(), kilobytes],
    ...[memoryMib, errors],
  ].join(' | ')
}
