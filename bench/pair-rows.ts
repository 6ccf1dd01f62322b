/** The rows of `pair.ts`: what a program needs before a row, and a turn of about a second. */
import type { Engine } from './engine.ts'
import { load, type Measured } from './load.ts'
import {
  buyInbox,
  buyMonitor,
  type MayflyProgram,
  type Program,
  startMayfly,
  startMayflyOn,
} from './program.ts'
import { BODY, ingest } from './rows/ingest.ts'
import { buyInboxes } from './rows/ingest-turns.ts'
import { ingestBetween } from './rows/instances.ts'
import { loadPages } from './rows/page.ts'
import { type Protocol, prepare, redeem } from './rows/paid-repeat.ts'
import { ping } from './rows/pulse.ts'
import { loadQuotes } from './rows/quote.ts'
import { BODIES, bodyOf, searchOn } from './rows/search.ts'
import { loadWrk } from './wrk.ts'

type Turn = () => Promise<Measured>
/** `endings` run before the program is stopped. */
type Started = { engine: Engine; checkout: string; endings: (() => Promise<unknown>)[] }
export type PairRow = {
  /** Default: both. */
  engine?: 'sqlite' | 'postgres'
  environment?: Record<string, string>
  prepare(program: MayflyProgram, started: Started): Promise<Turn>
  /** The same load on the framework alone. */
  bare?: (program: Program) => Turn
}

const SECONDS = 1
const JSON_BODY = { body: BODY, headers: { 'content-type': 'application/json' } }
/** To prepare an order takes longer than to repeat it, so a turn is too short for a rate: its CPU and latency count. */
const REPEATS_IN_TURN = 200
const MOST_TURNS = 9

export const PAIR_ROWS: Record<string, PairRow> = {
  ingest: ingestInto(1, 64),
  'ingest-256-connections': ingestInto(1, 256),
  // At half of the rate that it reaches: how long a sender waits on a service that is busy, not full.
  'ingest-half': {
    async prepare({ url }) {
      const { publicId } = await buyInbox(url)
      const { perSecond } = await ingest(url, publicId, { seconds: 2 * SECONDS })
      return () => ingest(url, publicId, { seconds: SECONDS, ratePerSecond: perSecond / 2 })
    },
  },
  'ingest-64': ingestInto(64, 64),
  'ingest-1000': ingestInto(1000, 64),
  ping: {
    async prepare({ url }) {
      const monitor = await buyMonitor(url)
      return () => ping(url, monitor, SECONDS)
    },
    bare:
      ({ url }) =>
      () =>
        ping(url, { publicId: 'any', pingToken: 'any' }, SECONDS),
  },
  // Two instances on one PostgreSQL, and 64 connections between them; `ingest-64` is one. The CPU is the first's.
  instances: {
    engine: 'postgres',
    async prepare(first, { checkout, endings }) {
      const second = await startMayflyOn(first.store, {}, { checkout })
      endings.push(second.stop)
      const inboxes = await buyInboxes(first.url, 64)
      return () => ingestBetween([first, second], inboxes, SECONDS)
    },
  },
  // Another start on a new store, until it listens: p50 says how long. The memory is of one that had nothing to do.
  start: {
    async prepare(_, { engine, checkout }) {
      return async () => {
        const begin = performance.now()
        const started = await startMayfly(engine, {}, { checkout })
        const took = performance.now() - begin
        await started.stop()
        const ms = Math.round(took)
        return { perSecond: Math.round(100_000 / ms) / 100, count: 1, p50: ms, p99: ms, errors: 0 }
      }
    },
  },
  quote: quotes({}),
  'challenge-payment': quotes({ 'x-payment-protocol': 'payment' }),
  'challenge-l402': quotes({ 'x-payment-protocol': 'l402' }),
  'repeat-payment': repeats('payment'),
  'repeat-l402': repeats('l402'),
  page: {
    async prepare({ url }) {
      const inbox = await buyInbox(url)
      await ingest(url, inbox.publicId, { seconds: SECONDS })
      return () => loadPages(url, inbox, SECONDS)
    },
  },
  // The p99 is of another inbox, whose owner asks for its status while 50 MiB are searched.
  search: {
    async prepare(program) {
      const { url } = program
      const [searched, other] = [await buyInbox(url), await buyInbox(url)]
      const [[, bytes, letters] = ['', 0, '']] = BODIES
      const body = bodyOf(letters, bytes).toString()
      await load(
        {
          url: `${url}/c/${searched.publicId}`,
          connections: 32,
          requests: 10_000,
          method: 'POST',
          headers: { 'content-type': 'text/plain' },
          body,
        },
        204,
      )
      return async () => {
        const searches = searchOn(program, searched)
        const status = await load(
          {
            url: `${url}/api/catch/${other.publicId}`,
            connections: 1,
            seconds: SECONDS,
            headers: { authorization: `Bearer ${other.ownerToken}` },
          },
          200,
        )
        await searches.stop()
        return status
      }
    },
  },
}

function ingestInto(inboxes: number, connections: number): PairRow {
  const turn =
    (url: string, publicIds: string[]): Turn =>
    () =>
      loadWrk({
        url,
        paths: publicIds.map((publicId) => `/c/${publicId}`),
        connections,
        seconds: SECONDS,
        ...JSON_BODY,
      })
  return {
    prepare: async ({ url }) => turn(url, await buyInboxes(url, inboxes)),
    bare: ({ url }) => turn(url, ['any']),
  }
}

function quotes(headers: Record<string, string>): PairRow {
  return {
    environment: { MAYFLY_LOG_LEVEL: 'info' },
    prepare:
      async ({ url }) =>
      () =>
        loadQuotes(url, { seconds: SECONDS, headers }),
  }
}

/** Each turn repeats orders that no turn has repeated before. */
function repeats(protocol: Protocol): PairRow {
  return {
    environment: { MAYFLY_LOG_LEVEL: 'info' },
    async prepare(program) {
      const orders = await prepare(program, protocol, REPEATS_IN_TURN * MOST_TURNS)
      return () => redeem(program, orders.splice(0, REPEATS_IN_TURN))
    },
  }
}
