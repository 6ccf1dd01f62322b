/** WHISPER read: 64 connections, 64 KiB. Each 200 has spent one read durably. */
import { randomBytes } from 'node:crypto'
import { createHttp } from '../../src/client/http.ts'
import type { WhisperCapability } from '../../src/client/index.ts'
import { createPayments } from '../../src/client/payments.ts'
import type { Engine } from '../engine.ts'
import type { Measured } from '../load.ts'
import { loadBytes } from '../load-bytes.ts'
import { startBare, startMayfly } from '../program.ts'
import { takeTurns } from '../turns.ts'

/** Each whisper has 402 reads, so this number lasts for a round. */
const WHISPERS_IN_ROUND = 120

export async function whisperRow(engine: Engine): Promise<string[]> {
  const bare = await startBare()
  const mayfly = await startMayfly(engine, { MAYFLY_RATE_LIMITS: 'off' })
  try {
    return [
      await takeTurns(
        { engine, mayfly, bare },
        {
          ours: async (seconds) =>
            read(mayfly.url, await buy(mayfly.url, WHISPERS_IN_ROUND), seconds),
          theirs: (seconds) => read(bare.url, [], seconds),
        },
      ),
    ]
  } finally {
    await mayfly.stop()
    await bare.stop()
  }
}

/** Reads the whispers in turn, so that none runs out of reads before the others. */
function read(url: string, whispers: WhisperCapability[], seconds: number): Promise<Measured> {
  let turn = 0
  const request = (): string => {
    const whisper = whispers[turn++ % whispers.length]
    const token = whisper ? `Authorization: Bearer ${whisper.readToken}\r\n` : ''
    return `GET /w/${whisper?.publicId ?? 'any'} HTTP/1.1\r\nHost: bench\r\n${token}\r\n`
  }
  return loadBytes({ url, connections: 64, seconds, request }, 200)
}

async function buy(url: string, count: number): Promise<WhisperCapability[]> {
  const payments = createPayments(createHttp(url, fetch), { maxSats: 1000 })
  const request = {
    ...({ product: 'whisper', planId: 'long' } as const),
    path: '/api/payments/whisper',
    headers: { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'long' },
    body: randomBytes(64 * 1024),
  }
  const whispers: WhisperCapability[] = []
  while (whispers.length < count) {
    const some = Array.from({ length: 10 }, () =>
      payments.buy(request, {
        planId: 'long',
        onInvoice: ({ bolt11 }) =>
          fetch(`${url}/simulator/pay`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ bolt11 }),
          }),
      }),
    )
    whispers.push(...((await Promise.all(some)) as WhisperCapability[]))
  }
  return whispers
}
