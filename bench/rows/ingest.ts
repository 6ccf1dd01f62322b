/** CATCH ingest: 64 connections, a 500-byte JSON body, each 204 durable. */
import type { Engine } from '../engine.ts'
import { load, type Measured } from '../load.ts'
import { buyInbox, startBare, startMayfly } from '../program.ts'
import { takeTurns } from '../turns.ts'

export const BODY = JSON.stringify({ id: 'evt_1', data: 'x'.repeat(472) })

export async function ingestRow(engine: Engine): Promise<string[]> {
  const bare = await startBare()
  const mayfly = await startMayfly(engine)
  try {
    const { publicId } = await buyInbox(mayfly.url)
    return [
      await takeTurns(
        { engine, mayfly, bare },
        {
          ours: (seconds) => ingest(mayfly.url, publicId, { seconds }),
          theirs: (seconds) => ingest(bare.url, publicId, { seconds }),
        },
      ),
    ]
  } finally {
    await mayfly.stop()
    await bare.stop()
  }
}

export function ingest(
  url: string,
  publicId: string,
  pace: { seconds: number; ratePerSecond?: number },
): Promise<Measured> {
  return load(
    {
      url: `${url}/c/${publicId}`,
      connections: 64,
      ...pace,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: BODY,
    },
    204,
  )
}
