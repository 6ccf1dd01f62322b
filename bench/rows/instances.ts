/**
 * Compares two instances with one, on the same PostgreSQL: CATCH ingest with 64 connections in total, into
 * one inbox, whose row both need, and into many.
 */
import { createCost } from '../cost.ts'
import type { BenchStore, Engine } from '../engine.ts'
import { load, type Measured, median } from '../load.ts'
import { buyInbox, type MayflyProgram, startMayflyOn } from '../program.ts'
import { BODY } from './ingest.ts'

const CONNECTIONS = 64
const INBOXES = 64
const ROUNDS = 3
const SECONDS = 5
const WARM_UP_SECONDS = 2

export async function instancesRow(engine: Engine): Promise<string[]> {
  const store: BenchStore = await engine.newStore()
  const first = await startMayflyOn(store)
  const second = await startMayflyOn(store)
  try {
    const inboxes: string[] = []
    while (inboxes.length < INBOXES) inboxes.push((await buyInbox(first.url)).publicId)
    const both = [first, second]
    return [
      await compare(engine, 'one inbox', { both, inboxes: inboxes.slice(0, 1) }),
      await compare(engine, `${INBOXES} inboxes`, { both, inboxes }),
    ]
  } finally {
    await first.stop()
    await second.stop()
    await store.remove()
  }
}

async function compare(
  engine: Engine,
  what: string,
  { both, inboxes }: { both: MayflyProgram[]; inboxes: string[] },
): Promise<string> {
  const clocks = [...both.map(({ cpuMs }) => cpuMs), engine.cpuMs]
  const turn = (programs: MayflyProgram[]) => {
    const measured: Measured[] = []
    const cost = createCost(clocks)
    return {
      measured,
      cost,
      async take(): Promise<void> {
        measured.push(await cost.during(() => ingestBetween(programs, inboxes, SECONDS)))
      },
    }
  }
  const [one, two] = [turn(both.slice(0, 1)), turn(both)]
  await ingestBetween(both, inboxes, WARM_UP_SECONDS)
  for (let round = 0; round < ROUNDS; round++) {
    await one.take()
    await two.take()
  }
  const [single, pair] = [median(one.measured), median(two.measured)]
  return (
    `${what}: two ${pair.perSecond}/s, p99 ${pair.p99} ms, ${pair.errors} errors, ` +
    `CPU a request ${two.cost.line()} (first + second + store); one ${single.perSecond}/s, p99 ${single.p99} ms, ` +
    `${single.errors} errors, ${one.cost.line()}; ` +
    `ratio ${(pair.perSecond / single.perSecond).toFixed(2)}`
  )
}

/** Divides the connections among the programs. The worst of their latencies counts. */
export async function ingestBetween(
  programs: MayflyProgram[],
  inboxes: string[],
  seconds: number,
): Promise<Measured> {
  let next = 0
  const parts = await Promise.all(
    programs.map(({ url }) =>
      load(
        {
          url,
          connections: CONNECTIONS / programs.length,
          seconds,
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: BODY,
          eachRequest: (request) => ({
            ...request,
            path: `/c/${inboxes[next++ % inboxes.length]}`,
          }),
        },
        204,
      ),
    ),
  )
  const sum = (of: (part: Measured) => number): number =>
    parts.reduce((total, part) => total + of(part), 0)
  return {
    perSecond: sum((part) => part.perSecond),
    count: sum((part) => part.count),
    p50: Math.max(...parts.map((part) => part.p50)),
    p99: Math.max(...parts.map((part) => part.p99)),
    errors: sum((part) => part.errors),
  }
}
