/**
 * `npm run bench:soak -- [--engine sqlite] [--seconds 600]`: measures the limit of CATCH ingest, and then
 * runs at half of it, while an owner reads the newest events all the time. Reports errors and the use of
 * memory. Exits with 1 after an error or if memory grew.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createMayfly } from '../src/client/index.ts'
import { SQLITE, startPostgresEngine } from './engine.ts'
import { type Measured, median } from './load.ts'
import { buyInbox, type MayflyProgram, startMayfly } from './program.ts'
import { ingest } from './rows/ingest.ts'

const ROUNDS = 3
const ROUND_SECONDS = 5
/** The share of the run after which memory is steady: caches are full and code is compiled. */
const SETTLED_AFTER = 0.25
const SAMPLE_MS = 1_000
const LOOK_EVERY_MS = 100
/** Garbage collection varies memory by this much. A leak exceeds it in ten minutes. */
const FLAT_MIB = 16
/** The most memory that any load may use. */
const MAX_MEMORY_MIB = 250

type Sample = { second: number; mib: number }

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'postgres' },
    seconds: { type: 'string', default: '600' },
  },
})
const seconds = Number(values.seconds)
if (!['postgres', 'sqlite'].includes(values.engine) || !(seconds > 0)) {
  process.stderr.write('Usage: npm run bench:soak -- [--engine postgres|sqlite] [--seconds 600]\n')
  process.exit(2)
}

const engine = values.engine === 'sqlite' ? SQLITE : await startPostgresEngine()
const mayfly = await startMayfly(engine)
try {
  process.exitCode = (await soak(mayfly)) ? 0 : 1
} finally {
  await mayfly.stop()
  await engine.stop()
}

/** @returns whether there was no error and memory did not grow. */
async function soak({ url, memoryMib }: MayflyProgram): Promise<boolean> {
  const inbox = await buyInbox(url)
  await ingest(url, inbox.publicId, { seconds: ROUND_SECONDS })
  const rounds: Measured[] = []
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push(await ingest(url, inbox.publicId, { seconds: ROUND_SECONDS }))
  }
  const limit = median(rounds)
  const ratePerSecond = Math.round(limit.perSecond / 2)
  say(`limit ${limit.perSecond}/s, p99 ${limit.p99} ms, ${errorsIn(rounds)} errors`)
  say(`${ratePerSecond}/s for ${seconds} seconds …`)

  const samples: Sample[] = []
  const begin = performance.now()
  const sampling = setInterval(() => {
    samples.push({ second: (performance.now() - begin) / 1000, mib: memoryMib() })
  }, SAMPLE_MS)
  const owner = lookOn(url, inbox)
  const measured = await ingest(url, inbox.publicId, { seconds, ratePerSecond })
  clearInterval(sampling)
  const pages = await owner.stop()

  const settled = samples.filter(({ second }) => second > seconds * SETTLED_AFTER)
  const perHour = slopeOf(settled) * 3600
  const grownMib = slopeOf(settled) * seconds * (1 - SETTLED_AFTER)
  const mostMib = Math.max(...samples.map(({ mib }) => mib))
  say(
    `${measured.perSecond}/s, p50 ${measured.p50} ms, p99 ${measured.p99} ms, ${measured.errors} errors; ` +
      `${pages.count} pages read, ${pages.errors} errors`,
  )
  say(
    `memory ${settled[0]?.mib ?? 0} → ${settled.at(-1)?.mib ?? 0} MiB, at most ${mostMib}, ` +
      `${signed(perHour)} MiB an hour, ${signed(grownMib)} MiB in this run`,
  )
  const isFlat = grownMib < FLAT_MIB && mostMib <= MAX_MEMORY_MIB
  if (!isFlat) say(`memory is not flat, or above ${MAX_MEMORY_MIB} MiB`)
  return isFlat && errorsIn([...rounds, measured, pages]) === 0
}

/** Loads the newest page again and again, like the page of an owner. */
function lookOn(url: string, inbox: { publicId: string; ownerToken: string }) {
  const own = createMayfly({ baseUrl: url }).catch(inbox)
  const pages = { count: 0, errors: 0 }
  let isStopped = false
  const looking = (async () => {
    while (!isStopped) {
      try {
        await own.page({ limit: 50 })
        pages.count++
      } catch {
        pages.errors++
      }
      await wait(LOOK_EVERY_MS)
    }
  })()
  return {
    async stop() {
      isStopped = true
      await looking
      return pages
    },
  }
}

/** The growth in MiB per second, by least squares. */
function slopeOf(samples: Sample[]): number {
  const mean = (of: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length
  const [second, mib] = [mean((sample) => sample.second), mean((sample) => sample.mib)]
  const spread = mean((sample) => (sample.second - second) ** 2)
  return spread === 0 ? 0 : mean((sample) => (sample.second - second) * (sample.mib - mib)) / spread
}

function errorsIn(parts: { errors: number }[]): number {
  return parts.reduce((sum, { errors }) => sum + errors, 0)
}

function signed(number: number): string {
  return (number < 0 ? '' : '+') + number.toFixed(1)
}

function say(line: string): void {
  process.stdout.write(`${engine.prefix}soak: ${line}\n`)
}
