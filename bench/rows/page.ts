/** A page of 50 events out of 10 000, on one connection. */
import type { Engine } from '../engine.ts'
import { load } from '../load.ts'
import { buyInbox, startMayfly } from '../program.ts'
import { BODY } from './ingest.ts'

const EVENTS = 10_000

export async function pageRow(engine: Engine): Promise<string[]> {
  const mayfly = await startMayfly(engine)
  try {
    const { publicId, ownerToken } = await buyInbox(mayfly.url)
    for (let sent = 0; sent < EVENTS; sent += 100) {
      await Promise.all(
        Array.from({ length: 100 }, () =>
          fetch(`${mayfly.url}/c/${publicId}`, { method: 'POST', body: BODY }),
        ),
      )
    }
    const page = await load(
      {
        url: `${mayfly.url}/api/catch/${publicId}/events?limit=50`,
        connections: 1,
        seconds: 5,
        headers: { authorization: `Bearer ${ownerToken}` },
      },
      200,
    )
    return [`${page.perSecond}/s on one connection, p99 ${page.p99} ms, ${page.errors} errors`]
  } finally {
    await mayfly.stop()
  }
}
