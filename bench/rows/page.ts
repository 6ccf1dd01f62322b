/** A page of 50 events out of 10 000, on one connection. */
import type { Engine } from '../engine.ts'
import { load, type Measured } from '../load.ts'
import { buyInbox, startMayfly } from '../program.ts'
import { BODY } from './ingest.ts'

const EVENTS = 10_000

export async function pageRow(engine: Engine): Promise<string[]> {
  const mayfly = await startMayfly(engine)
  try {
    const { publicId, ownerToken } = await buyInbox(mayfly.url)
    await load(
      {
        url: `${mayfly.url}/c/${publicId}`,
        connections: 64,
        requests: EVENTS,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: BODY,
      },
      204,
    )
    const page = await loadPages(mayfly.url, { publicId, ownerToken }, 5)
    return [`${page.perSecond}/s on one connection, p99 ${page.p99} ms, ${page.errors} errors`]
  } finally {
    await mayfly.stop()
  }
}

export function loadPages(
  url: string,
  { publicId, ownerToken }: { publicId: string; ownerToken: string },
  seconds: number,
): Promise<Measured> {
  return load(
    {
      url: `${url}/api/catch/${publicId}/events?limit=50`,
      connections: 1,
      seconds,
      headers: { authorization: `Bearer ${ownerToken}` },
    },
    200,
  )
}
