/**
 * `npm run abuse -- [--seconds 20] [1 2 …]`: runs the attacks of `attacks.ts` one after another, each on a
 * new service with default settings. Prints the resident memory and what a bystander saw. Everything runs
 * on loopback. Exits with 1 if an attack exceeded a limit.
 */
import { EventEmitter } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { newFileStore, SQLITE } from '../engine.ts'
import { startMayflyAsItComes } from '../program.ts'
import { ATTACKS, type Attack } from './attacks.ts'
import type { Seen } from './bystander.ts'
import type { Target } from './target.ts'

/** The limits for all attacks. */
const MOST = { residentMib: 450, p99Ms: 50 }
const SAMPLE_MS = 50
/** Time to fill inboxes. The attack itself has `--seconds`. */
const PREPARE_MS = 180_000

/** No attack, for comparison. */
const NOBODY: Attack = { name: '0 nobody', prepare: async () => [], run: async () => {} }

type Outcome = Seen & {
  residentMib: number
  notes: string[]
  hasHarmed: boolean
  hasEnded: boolean
}

const { values, positionals } = parseArgs({
  options: { seconds: { type: 'string', default: '20' } },
  allowPositionals: true,
})
const seconds = Number(values.seconds)
const chosen = ATTACKS.filter(
  ({ name }) => positionals.length === 0 || positionals.some((n) => name.startsWith(`${n} `)),
)
if (!(seconds > 0) || chosen.length === 0) {
  process.stderr.write('Usage: npm run abuse -- [--seconds 20] [1 2 …]\n')
  process.exit(2)
}

const heads = ['attack', 'MiB', '/health p99', 'catalogue p99', 'bought', 'paid repeats', 'notes']
print(heads)
print(heads.map((head) => '-'.repeat(head.length)))
const idle = await attackOn(NOBODY)
print([NOBODY.name, ...columns(idle, holds(idle))])
let isHeld = holds(idle)
for (const attack of chosen) {
  const outcome = await attackOn(attack)
  const { mostTimesIdle = Number.POSITIVE_INFINITY } = attack
  const isHeldHere = holds(outcome) && p99(outcome.health) <= mostTimesIdle * p99(idle.health)
  isHeld &&= isHeldHere
  print([attack.name, ...columns(outcome, isHeldHere)])
}
process.exitCode = isHeld ? 0 : 1

async function attackOn(attack: Attack): Promise<Outcome> {
  const store = await newFileStore()
  const ending = new AbortController()
  const program = await startMayflyAsItComes(
    { ...SQLITE, newStore: async () => store },
    { MAYFLY_TRUSTED_PROXIES: '127.0.0.1/32', ...(await attack.setUp?.(ending.signal)) },
  )
  // Each connection of an attack listens to the signal.
  EventEmitter.setMaxListeners(0, ending.signal)
  const notes: string[] = []
  let residentMib = 0
  let hasEnded = false
  let hasHarmed = false
  const sampling = setInterval(() => {
    const now = program.memoryMib()
    hasEnded ||= now === 0
    residentMib = Math.max(residentMib, now)
  }, SAMPLE_MS)
  const target: Target = {
    url: program.url,
    signal: ending.signal,
    storeBytes: () => sizeOf(dirname(store.file)),
    note: (text) => notes.push(text),
    fail(text) {
      hasHarmed = true
      notes.push(text)
    },
  }
  try {
    const preparing = setTimeout(() => ending.abort(), PREPARE_MS)
    const inboxes = await attack.prepare(target)
    clearTimeout(preparing)
    const bystander = await startBystander(program.url)
    const attacking = attack.run(target, inboxes).catch((error: unknown) => {
      if (!ending.signal.aborted) notes.push(String(error))
    })
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    const seen = await bystander.end()
    ending.abort()
    await attacking
    return { ...seen, residentMib, notes, hasHarmed, hasEnded }
  } finally {
    ending.abort()
    clearInterval(sampling)
    await program.stop()
  }
}

async function startBystander(url: string): Promise<{ end(): Promise<Seen> }> {
  const worker = new Worker(new URL('bystander.ts', import.meta.url), { workerData: { url } })
  const message = <T>(): Promise<T> =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
  await message()
  return {
    async end() {
      const seen = message<Seen>()
      worker.postMessage('end')
      const told = await seen
      await worker.terminate()
      return told
    },
  }
}

function holds({ residentMib, health, catalog, purchases, repeats, ...ends }: Outcome): boolean {
  return (
    !ends.hasEnded &&
    !ends.hasHarmed &&
    residentMib <= MOST.residentMib &&
    p99(health) <= MOST.p99Ms &&
    p99(catalog) <= MOST.p99Ms &&
    missed(purchases) === 0 &&
    missed(repeats) === 0
  )
}

/** The requests without an answer, except the last one, which may be under way at the end. */
function missed({ tried, done }: { tried: number; done: number }): number {
  return Math.max(0, tried - done - 1)
}

function columns(outcome: Outcome, isHeld: boolean): string[] {
  const { residentMib, health, catalog, purchases, repeats, notes, hasEnded } = outcome
  return [
    hasEnded ? 'it ended' : String(residentMib),
    `${p99(health).toFixed(1)} ms`,
    `${p99(catalog).toFixed(1)} ms`,
    `${purchases.done} of ${purchases.tried}`,
    `${repeats.done} of ${repeats.tried}`,
    `${isHeld ? 'held' : 'NOT HELD'}${notes.map((note) => `; ${note}`).join('')}`,
  ]
}

function p99(latencies: number[]): number {
  const sorted = latencies.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? Number.NaN
}

function print(cells: string[]): void {
  const widths = [33, 9, 13, 14, 9, 13, 0]
  process.stdout.write(`${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' ')}\n`)
}

function sizeOf(folder: string): number {
  return readdirSync(folder).reduce((bytes, name) => bytes + statSync(join(folder, name)).size, 0)
}
