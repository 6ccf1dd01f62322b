/** A PULSE ping: 64 connections on one monitor, each 204 durable. */
import { load, type Measured, median } from '../load.ts'
import { buyMonitor, startBare, startMayfly } from '../program.ts'

const ROUNDS = 3
const SECONDS = 5

export async function pulseRow(): Promise<string[]> {
  const bare = await startBare()
  const mayfly = await startMayfly()
  try {
    const monitor = await buyMonitor(mayfly.url)
    const ours: Measured[] = []
    const theirs: Measured[] = []
    await ping(mayfly.url, monitor, 2)
    await ping(bare.url, monitor, 2)
    for (let round = 0; round < ROUNDS; round++) {
      theirs.push(await ping(bare.url, monitor, SECONDS))
      ours.push(await ping(mayfly.url, monitor, SECONDS))
    }
    const [our, their] = [median(ours), median(theirs)]
    return [
      `${our.perSecond}/s, p50 ${our.p50} ms, p99 ${our.p99} ms, ${our.errors} errors; bare ${their.perSecond}/s; ` +
        `ratio ${(our.perSecond / their.perSecond).toFixed(2)}; ${mayfly.memoryMib()} MiB`,
    ]
  } finally {
    await mayfly.stop()
    await bare.stop()
  }
}

function ping(
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
