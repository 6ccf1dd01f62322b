/** A PULSE ping: 64 connections on one monitor, each 204 durable. */
import type { Engine } from '../engine.ts'
import { load, type Measured } from '../load.ts'
import { buyMonitor, startBare, startMayfly } from '../program.ts'
import { takeTurns } from '../turns.ts'

export async function pulseRow(engine: Engine): Promise<string[]> {
  const bare = await startBare()
  const mayfly = await startMayfly(engine)
  try {
    const monitor = await buyMonitor(mayfly.url)
    return [
      await takeTurns(
        { engine, mayfly, bare },
        {
          ours: (seconds) => ping(mayfly.url, monitor, seconds),
          theirs: (seconds) => ping(bare.url, monitor, seconds),
        },
      ),
    ]
  } finally {
    await mayfly.stop()
    await bare.stop()
  }
}

export function ping(
  url: string,
  { publicId, pingToken }: { publicId: string; pingToken: string },
  seconds: number,
): Promise<Measured> {
  return load(
    {
      url: `${url}/p/${publicId}`,
      connections: 64,
      seconds,
      method: 'POST',
      headers: { authorization: `Bearer ${pingToken}` },
    },
    204,
  )
}
