/** A native quote on the simulator. Each is a new order with a signed invoice. */
import { randomUUID } from 'node:crypto'
import { createCost } from '../cost.ts'
import type { Engine } from '../engine.ts'
import { load, type Measured } from '../load.ts'
import { startMayfly } from '../program.ts'

export async function quoteRow(engine: Engine): Promise<string[]> {
  const mayfly = await startMayfly(engine, { MAYFLY_LOG_LEVEL: 'info' })
  try {
    await loadQuotes(mayfly.url, { seconds: 2 })
    const cost = createCost([mayfly.cpuMs, engine.cpuMs])
    const measured = await cost.during(() => loadQuotes(mayfly.url, { seconds: 5 }))
    return [
      `${measured.perSecond}/s with 32 connections, p50 ${measured.p50} ms, p99 ${measured.p99} ms, ` +
        `${measured.errors} errors; CPU a request ${cost.line()} (service + store); ${mayfly.memoryMib()} MiB`,
    ]
  } finally {
    await mayfly.stop()
  }
}

/** @param headers besides the key, such as the protocol of a challenge. */
export function loadQuotes(
  url: string,
  { seconds, headers = {} }: { seconds: number; headers?: Record<string, string> },
): Promise<Measured> {
  return load(
    {
      url: `${url}/api/payments/catch`,
      connections: 32,
      seconds,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"planId":"spark"}',
      eachRequest: (request) => ({
        ...request,
        headers: { ...request.headers, 'idempotency-key': randomUUID() },
      }),
    },
    402,
  )
}
