/** A 402 with a challenge, on the simulator: a new order, a signed invoice and a bound challenge. */
import { createCost } from '../cost.ts'
import type { Engine } from '../engine.ts'
import { load } from '../load.ts'
import { startBare, startMayfly } from '../program.ts'
import { loadQuotes } from './quote.ts'

export async function challengeRow(engine: Engine): Promise<string[]> {
  return [await challenges(engine, 'payment'), await challenges(engine, 'l402')]
}

async function challenges(engine: Engine, protocol: 'payment' | 'l402'): Promise<string> {
  const bare = await startBare()
  const mayfly = await startMayfly(engine, { MAYFLY_LOG_LEVEL: 'info' })
  try {
    const ask = (seconds: number) =>
      loadQuotes(mayfly.url, { seconds, headers: { 'x-payment-protocol': protocol } })
    await ask(2)
    const cost = createCost([mayfly.cpuMs, engine.cpuMs])
    const measured = await cost.during(() => ask(5))
    const theirs = await bareRate(bare.url)
    return (
      `${protocol}: ${measured.perSecond}/s with 32 connections, p50 ${measured.p50} ms, ` +
      `p99 ${measured.p99} ms, ${measured.errors} errors; bare ${theirs}/s; ` +
      `ratio ${(measured.perSecond / theirs).toFixed(3)}; ` +
      `CPU a request ${cost.line()} (service + store); ${mayfly.memoryMib()} MiB`
    )
  } finally {
    await mayfly.stop()
    await bare.stop()
  }
}

/** The rate of the framework alone, with the same body and as many connections. */
export async function bareRate(url: string): Promise<number> {
  const { perSecond } = await load(
    {
      url: `${url}/c/any`,
      connections: 32,
      seconds: 3,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"planId":"spark"}',
    },
    204,
  )
  return perSecond
}
