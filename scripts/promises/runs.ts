/**
 * The figures of long runs, for docs/promises.md. `npm run simulate -- --record` notes its own; whoever makes another
 * one notes it with `node scripts/promises/runs.ts COMMAND RESULT`.
 */
import { readFileSync, writeFileSync } from 'node:fs'

export type Runs = {
  /** One for each command, the last one that was made. */
  runs: { command: string; date: string; result: string }[]
  /** By which run each planted mistake was found. */
  plants: Record<string, number>
}

const FILE = new URL('runs.json', import.meta.url)

export function readRuns(): Runs {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Runs
}

export function noteRun(command: string, result: string): void {
  const date = new Date().toISOString().slice(0, 10)
  write(withRun(readRuns(), { command, date, result }))
}

export function notePlant(name: string, run: number): void {
  write(withPlant(readRuns(), { name, run }))
}

/** A run takes the place of the last one of its command. */
export function withRun(known: Runs, run: Runs['runs'][number]): Runs {
  const others = known.runs.filter(({ command }) => command !== run.command)
  return { ...known, runs: [...others, run] }
}

export function withPlant(known: Runs, { name, run }: { name: string; run: number }): Runs {
  return { ...known, plants: { ...known.plants, [name]: run } }
}

function write(runs: Runs): void {
  writeFileSync(FILE, `${JSON.stringify(runs, null, 2)}\n`)
}

if (import.meta.main) {
  const [command, result] = process.argv.slice(2)
  if (!command || !result) throw new Error('Usage: node scripts/promises/runs.ts COMMAND RESULT')
  noteRun(command, result)
}
