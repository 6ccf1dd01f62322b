/**
 * Searches (`q`) 50 MiB of bodies without a match, again and again on one connection, and measures how
 * cheap requests on another connection slow down: an owner's status, which reads the store, and an ingest,
 * which writes to it.
 */
import { newFileStore } from '../engine.ts'
import { type Filled, fill } from '../fill.ts'
import { type Load, load, type Measured } from '../load.ts'
import { type Program, startMayflyOn } from '../program.ts'
import { BODY } from './ingest.ts'

const MIB = 1024 * 1024
const BYTES = 50 * MIB
const SECONDS = 5

/** The bodies: ASCII text, and other text, whose case is slower to fold. */
export const BODIES: [what: string, bytes: number, letters: string][] = [
  ['10 000 bodies of 5 KiB', Math.floor(BYTES / 10_000), 'The quick brown fox {"id":1234567890}, '],
  [
    '50 bodies of 1 MiB, not ASCII',
    MIB,
    'Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich. ',
  ],
]

export async function searchRow(): Promise<string[]> {
  const lines: string[] = []
  for (const [what, bytes, letters] of BODIES) {
    lines.push(`${what}: ${await measure(bodyOf(letters, bytes))}`)
  }
  return lines
}

async function measure(body: Buffer): Promise<string> {
  const store = await newFileStore()
  try {
    const first = await startMayflyOn(store)
    await first.stop()
    const eventsEach = Math.ceil(BYTES / body.length)
    const [searched] = fill(store.file, { inboxes: 1, eventsEach, body: () => body })
    const [other] = fill(store.file, { inboxes: 1, eventsEach: 0, body: () => body })
    if (!searched || !other) throw new Error('nothing was filled')
    const mayfly = await startMayflyOn(store)
    try {
      return await compare(mayfly, searched, other)
    } finally {
      await mayfly.stop()
    }
  } finally {
    await store.remove()
  }
}

async function compare(
  mayfly: Program,
  searched: Filled[number],
  other: Filled[number],
): Promise<string> {
  const status: Load = {
    url: `${mayfly.url}/api/catch/${other.publicId}`,
    connections: 1,
    seconds: SECONDS,
    headers: { authorization: `Bearer ${other.ownerToken}` },
  }
  const ingest: Load = {
    url: `${mayfly.url}/c/${other.publicId}`,
    connections: 1,
    seconds: SECONDS,
    method: 'POST',
    body: BODY,
  }
  await load({ ...status, seconds: 1 }, 200)
  await load({ ...ingest, seconds: 1 }, 204)
  const alone = [await load(status, 200), await load(ingest, 204)] as const
  const searches = searchOn(mayfly, searched)
  const beside = [await load(status, 200), await load(ingest, 204)] as const
  const { count, milliseconds } = await searches.stop()
  const pair = (name: string, without: Measured, withSearch: Measured): string =>
    `${name} p50 ${without.p50} → ${withSearch.p50} ms, p99 ${without.p99} → ${withSearch.p99} ms` +
    ` (${withSearch.errors} errors)`
  return (
    `a search ${Math.round(milliseconds / count)} ms; beside it ${pair('status', alone[0], beside[0])}, ` +
    `${pair('ingest', alone[1], beside[1])}; ${mayfly.memoryMib()} MiB`
  )
}

/** Searches without a pause until `stop` is called. */
export function searchOn({ url }: Program, { publicId, ownerToken }: Filled[number]) {
  const startedAt = performance.now()
  let count = 0
  let isStopped = false
  const searching = (async () => {
    while (!isStopped) {
      const answer = await fetch(
        `${url}/api/catch/${publicId}/events?q=nowhere%20to%20be%20found`,
        {
          headers: { authorization: `Bearer ${ownerToken}` },
        },
      )
      const { events } = (await answer.json()) as { events?: unknown[] }
      if (events?.length !== 0) throw new Error('the search found something')
      count++
    }
  })()
  return {
    async stop() {
      isStopped = true
      await searching
      return { count, milliseconds: performance.now() - startedAt }
    },
  }
}

export function bodyOf(letters: string, bytes: number): Buffer {
  // Cut between two characters, so that the body stays text.
  const text = letters.repeat(Math.ceil(bytes / Buffer.byteLength(letters)))
  let end = text.length
  while (Buffer.byteLength(text.slice(0, end)) > bytes) end--
  return Buffer.from(text.slice(0, end))
}
