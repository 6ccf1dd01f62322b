/**
 * `node bench/pair.ts ROW [CHECKOUT …] [--engine postgres] [--rounds 5]`: runs a row on this checkout, on others,
 * and where it makes sense on the bare framework, a second each in turn, so that all meet the same machine.
 */
import { parseArgs } from 'node:util'
import { createCost } from './cost.ts'
import { type Engine, SQLITE, startPostgresEngine } from './engine.ts'
import { type Measured, median } from './load.ts'
import { PAIR_ROWS } from './pair-rows.ts'
import { HERE, type MayflyProgram, type Program, startBare, startMayfly } from './program.ts'

const { values, positionals } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite' },
    rounds: { type: 'string', default: '5' },
  },
  allowPositionals: true,
})
const [name = '', ...others] = positionals
const row = PAIR_ROWS[name]
if (!row) {
  process.stderr.write(`Rows: ${Object.keys(PAIR_ROWS).join(', ')}\n`)
  process.exit(2)
}

type Runner = {
  what: string
  program: Program
  turn(): Promise<Measured>
  measured: Measured[]
  cost: ReturnType<typeof createCost>
  written: number
}

const engine: Engine = values.engine === 'postgres' ? await startPostgresEngine() : SQLITE
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
  for (const one of runners) process.stdout.write(`${name}: ${lineOf(one)}\n`)
} finally {
  for (const end of endings) await end()
  for (const { program } of runners) await program.stop()
  await engine.stop()
}

function runner(what: string, program: Program | MayflyProgram, turn: Runner['turn']): Runner {
  const cost = createCost([program.cpuMs, engine.cpuMs])
  return { what, program, turn, measured: [], cost, written: 0 }
}

function lineOf({ what, program, measured, cost, written }: Runner): string {
  const rates = measured.map(({ perSecond }) => perSecond)
  const count = measured.reduce((sum, one) => sum + one.count, 0)
  const errors = measured.reduce((sum, one) => sum + one.errors, 0)
  const { perSecond, p50, p99 } = median(measured)
  return (
    `${perSecond}/s (${Math.min(...rates)} to ${Math.max(...rates)}), p50 ${p50} ms, p99 ${p99} ms, ` +
    `${errors} errors; CPU ${cost.line()} (service + store); ` +
    `${(written / count / 1000).toFixed(2)} kB written each; ${program.memoryMib()} MiB; ${what}`
  )
}
