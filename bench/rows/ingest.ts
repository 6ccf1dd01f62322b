/** CATCH ingest: 64 connections, a 500-byte JSON body, each 204 durable. */
import { load, type Measured, median } from '../load.ts'
import { buyInbox, startBare, startMayfly } from '../program.ts'

const ROUNDS = 3
const SECONDS = 5
export const BODY = JSON.stringify({ id: 'evt_1', data: 'x'.repeat(472) })

export async function ingestRow(): Promise<string[]> {
  const bare = await startBare()
  const mayfly = await startMayfly()
  try {
    const { publicId } = await buyInbox(mayfly.url)
    const ours: Measured[] = []
    const theirs: Measured[] = []
    await ingest(mayfly.url, publicId, 2)
    await ingest(bare.url, publicId, 2)
    for (let round = 0; round < ROUNDS; round++) {
      theirs.push(await ingest(bare.url, publicId, SECONDS))
      ours.push(await ingest(mayfly.url, publicId, SECONDS))
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

export function ingest(url: string, publicId: string, seconds: number): Promise<Measured> {
  return load(
    {
      url: `${url}/c/${publicId}`,
      connections: 64,
      seconds,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: BODY,
    },
    204,
  )
}
