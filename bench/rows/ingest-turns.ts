/**
 * CATCH ingest into one inbox and into many in turn, on a file: what reaches the disk, how many events share a
 * commit, and how long each thread waits for the other.
 */
import { createCost } from '../cost.ts'
import type { Engine } from '../engine.ts'
import { type Measured, median } from '../load.ts'
import { buyInbox, type MayflyProgram, startBare, startMayfly } from '../program.ts'
import { loadWrk } from '../wrk.ts'
import { BODY } from './ingest.ts'

/** How many inboxes, and connections. */
const LOADS: [inboxes: number, connections: number][] = [
  [1, 16],
  [1, 64],
  [1, 256],
  [64, 64],
  [1000, 64],
]
const ROUNDS = 3
const SECONDS = 3
const WARM_UP_SECONDS = 2
const AT_ONCE = 20

export async function ingestTurnsRow(engine: Engine): Promise<string[]> {
  const bare = await startBare()
  const mayfly = await startMayfly(engine, {}, { isWatched: true })
  try {
    const inboxes = await buyInboxes(mayfly.url, 1000)
    const lines: string[] = []
    for (const [count, connections] of LOADS) {
      const paths = inboxes.slice(0, count).map((publicId) => `/c/${publicId}`)
      const ingest = (url: string, seconds: number): Promise<Measured> =>
        loadWrk({
          url,
          paths,
          connections,
          seconds,
          body: BODY,
          headers: { 'content-type': 'application/json' },
        })
      const line = await compare(mayfly, {
        ours: (seconds) => ingest(mayfly.url, seconds),
        theirs: (seconds) => ingest(bare.url, seconds),
      })
      lines.push(`${count} inboxes, ${connections} connections: ${line}`)
    }
    return lines
  } finally {
    await mayfly.stop()
    await bare.stop()
  }
}

async function compare(
  mayfly: MayflyProgram,
  loads: { ours(seconds: number): Promise<Measured>; theirs(seconds: number): Promise<Measured> },
): Promise<string> {
  await loads.ours(WARM_UP_SECONDS)
  const [ours, theirs]: [Measured[], Measured[]] = [[], []]
  const cost = createCost([mayfly.cpuMs])
  let [bytes, events, commits, seconds] = [0, 0, 0, 0]
  const idle = { main: 0, writer: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    theirs.push(await loads.theirs(SECONDS))
    const before = { bytes: mayfly.writtenBytes(), inside: await mayfly.inside() }
    const measured = await cost.during(() => loads.ours(SECONDS))
    const inside = await mayfly.inside()
    ours.push(measured)
    bytes += mayfly.writtenBytes() - before.bytes
    events += measured.count
    seconds += SECONDS
    const made = inside.commits.map((count, i) => count - (before.inside.commits[i] ?? 0))
    const writer = made.indexOf(Math.max(...made))
    commits += made[writer] ?? 0
    idle.main += idleBetween(before.inside.main, inside.main) / ROUNDS
    idle.writer += idleBetween(before.inside.threads[writer], inside.threads[writer]) / ROUNDS
  }
  const [our, their] = [median(ours), median(theirs)]
  return (
    `${our.perSecond}/s, p50 ${our.p50} ms, p99 ${our.p99} ms, ${our.errors} errors; bare ${their.perSecond}/s; ` +
    `ratio ${(our.perSecond / their.perSecond).toFixed(2)}; CPU a request ${cost.line()}; ` +
    `${(bytes / events / 1000).toFixed(1)} kB written an event; ` +
    `${Math.round(commits / seconds)} commits/s of ${(events / commits).toFixed(0)} events; ` +
    `idle: main ${percent(idle.main)}, writer ${percent(idle.writer)}`
  )
}

type Busy = { idle: number; active: number }

function idleBetween(before: Busy = { idle: 0, active: 0 }, after: Busy = before): number {
  const idle = after.idle - before.idle
  return idle / (idle + after.active - before.active)
}

const percent = (part: number): string => `${Math.round(100 * part)} %`

export async function buyInboxes(url: string, count: number): Promise<string[]> {
  const inboxes: string[] = []
  while (inboxes.length < count) {
    const some = await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, count - inboxes.length) }, () => buyInbox(url)),
    )
    inboxes.push(...some.map(({ publicId }) => publicId))
  }
  return inboxes
}
