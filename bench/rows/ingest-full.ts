/**
 * CATCH ingest on a store with a million events in 10 000 inboxes and on an empty store, in turn: into one
 * inbox, and into all inboxes.
 */
import { stat } from 'node:fs/promises'
import { type FileStore, newFileStore } from '../engine.ts'
import { type Filled, fill } from '../fill.ts'
import { load, type Measured, median } from '../load.ts'
import { type MayflyProgram, startMayflyOn } from '../program.ts'
import { BODY } from './ingest.ts'

const INBOXES = 10_000
const EVENTS_EACH = 100
const ROUNDS = 5
const SECONDS = 4

export async function ingestFullRow(): Promise<string[]> {
  const stores = [await newFileStore(), await newFileStore()] as const
  try {
    const full = await startFilled(stores[0], EVENTS_EACH)
    const empty = await startFilled(stores[1], 0)
    const { size } = await stat(stores[0].file)
    try {
      const lines = [
        await compare('one inbox', { full, empty }, (of) => [of.filled[0]?.publicId ?? '']),
        await compare('all inboxes', { full, empty }, (of) =>
          of.filled.map(({ publicId }) => publicId),
        ),
      ]
      const sizeMib = Math.round(size / 1024 / 1024)
      return [...lines, `${INBOXES * EVENTS_EACH} events stored were ${sizeMib} MiB`]
    } finally {
      await full.program.stop()
      await empty.program.stop()
    }
  } finally {
    for (const store of stores) await store.remove()
  }
}

type Store = { program: MayflyProgram; filled: Filled }

/** Lets the service create the store, and fills it while the service is stopped. */
async function startFilled(store: FileStore, eventsEach: number): Promise<Store> {
  const first = await startMayflyOn(store)
  await first.stop()
  const body = Buffer.from(BODY)
  const filled = fill(store.file, { inboxes: INBOXES, eventsEach, body: () => body })
  return { program: await startMayflyOn(store), filled }
}

async function compare(
  what: string,
  { full, empty }: { full: Store; empty: Store },
  inboxesOf: (store: Store) => string[],
): Promise<string> {
  const ingest = (store: Store, seconds: number): Promise<Measured> => {
    const inboxes = inboxesOf(store)
    let next = 0
    return load(
      {
        url: store.program.url,
        connections: 64,
        seconds,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: BODY,
        // Consecutive requests go to distant inboxes. 7 919 and the number of inboxes have no common divisor.
        eachRequest: (request) => {
          next += 7_919
          return { ...request, path: `/c/${inboxes[next % inboxes.length]}` }
        },
      },
      204,
    )
  }
  await ingest(full, 2)
  await ingest(empty, 2)
  const [ours, theirs]: [Measured[], Measured[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    theirs.push(await ingest(empty, SECONDS))
    ours.push(await ingest(full, SECONDS))
  }
  const [our, their] = [median(ours), median(theirs)]
  return (
    `${what}: ${our.perSecond}/s, p50 ${our.p50} ms, p99 ${our.p99} ms, ${our.errors} errors; ` +
    `empty ${their.perSecond}/s, p99 ${their.p99} ms; ` +
    `ratio ${(our.perSecond / their.perSecond).toFixed(2)}; ${full.program.memoryMib()} MiB`
  )
}
