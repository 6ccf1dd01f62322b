/**
 * Mixed load by clients that take no failure for an answer: each repeats with the same key until it
 * knows how its request ended, and writes down what it was told.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import {
  type CatchCapability,
  createMayfly,
  MayflyError,
  type PulseCapability,
  sealWhisper,
  type Wallet,
  WalletError,
} from '../../src/client/index.ts'
import { simulatorWallet } from '../../src/client/wallets/simulator.ts'
import { nothingTold, type Told } from '../support/accounting.ts'

export type Load = {
  told: Told
  /** Answers so far, of any kind that promises something. */
  acknowledged(): number
  /** How many answers there were of each status. */
  statuses: Map<number, number>
  /** What no fault explains: a refusal of somebody who paid, an answer that is none. */
  surprises: string[]
  /** Ends the load; each client finishes the purchase that it is at, which needs a service. */
  stop(): Promise<void>
  /** Ends it at once, for a test that has failed. */
  abandon(): void
}

const CLIENTS = 12
/** A request that meets a dead or frozen process is given up, and made again. */
const ANSWER_WITHIN_MS = 8_000
/** Between two attempts that met nobody. */
const PAUSE_MS = 25
const EVENTS_AT_ONCE = 8
const READS = 3

/**
 * @param urls the processes that are up, as far as is known; each request goes to any of them.
 * @param clockJumps where the clock jumps, the end of a replay or of an invoice is no surprise.
 */
export function startLoad(
  urls: () => readonly string[],
  { clockJumps = false }: { clockJumps?: boolean } = {},
): Load {
  const told = nothingTold()
  const statuses = new Map<number, number>()
  const surprises: string[] = []
  const inboxes: CatchCapability[] = []
  const monitors: PulseCapability[] = []
  let acknowledged = 0
  let isStopping = false
  const abandoned = new AbortController()

  /** To any process, whatever host the SDK has in mind. */
  const anywhere: typeof fetch = async (input, init) => {
    const { pathname, search } = new URL(String(input))
    const up = urls()
    const url = up[Math.floor(Math.random() * up.length)]
    if (url === undefined) throw new TypeError('nobody is up')
    const limit = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const signal = AbortSignal.any([
      limit,
      abandoned.signal,
      ...(init?.signal ? [init.signal] : []),
    ])
    const answer = await fetch(url + pathname + search, { ...init, signal })
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    return answer
  }
  const baseUrl = 'http://mayfly.test'
  const simulator = simulatorWallet({ baseUrl, fetch: anywhere })
  /** Paying again is safe there, so it is done until it is known to be paid. */
  const wallet: Wallet = {
    async pay(bolt11, options) {
      for (;;) {
        try {
          return await simulator.pay(bolt11, options)
        } catch (error) {
          const isUnknown = error instanceof WalletError && error.outcome === 'unknown'
          if (!isUnknown || abandoned.signal.aborted) throw error
          await wait(PAUSE_MS)
        }
      }
    },
  }
  const mayfly = createMayfly({ baseUrl, fetch: anywhere })

  /** Until it worked. A refusal by the service, other than one of being away, is a surprise. */
  async function insist<T>(what: string, work: () => Promise<T>): Promise<T | null> {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const isRefusal = error instanceof MayflyError && error.status >= 400 && error.status < 500
        // The books tell whether it was paid.
        if (isRefusal && error.phrase === 'order expired') return null
        if (isRefusal && clockJumps && error.phrase === 'already delivered') return null
        // The invoice was over by the clock of then. By the clock of now it may be valid for another year.
        if (clockJumps && error instanceof MayflyError && error.phrase === 'payment failed') {
          return null
        }
        if (isRefusal) {
          surprises.push(`${what}: ${error.message}`)
          return null
        }
        if (abandoned.signal.aborted) return null
        await wait(PAUSE_MS)
      }
    }
  }

  /** Buys with one key until it has the capability, then asks for it once more. */
  async function purchase<T>(
    what: string,
    buy: (terms: {
      planId: 'spark'
      wallet: typeof wallet
      idempotencyKey: string
      signal: AbortSignal
      onProgress: (progress: { quote: { orderId: string } }) => void
    }) => Promise<T>,
  ): Promise<T | null> {
    const idempotencyKey = randomUUID()
    const orders = new Set<string>()
    const once = () =>
      insist(what, () =>
        buy({
          planId: 'spark',
          wallet,
          idempotencyKey,
          signal: abandoned.signal,
          onProgress: ({ quote }) => orders.add(quote.orderId),
        }),
      )
    const bought = await once()
    const again = bought && (await once())
    if (orders.size > 1) surprises.push(`${what}: one key has ${orders.size} orders`)
    for (const orderId of orders) {
      const bodies = [bought, again].filter((body) => body !== null)
      if (bodies.length > 0)
        told.delivered.set(orderId, new Set(bodies.map((body) => JSON.stringify(body))))
    }
    acknowledged += 2
    return bought
  }

  async function buyInbox(): Promise<void> {
    const inbox = await purchase('an inbox', (terms) => mayfly.buyCatch(terms))
    if (!inbox) return
    told.stored.set(inbox.publicId, new Set())
    inboxes.push(inbox)
  }

  async function sendEvents(): Promise<void> {
    const inbox = inboxes[Math.floor(Math.random() * inboxes.length)]
    if (!inbox) return buyInbox()
    await Promise.all(
      Array.from({ length: EVENTS_AT_ONCE }, async () => {
        const body = randomUUID()
        const answer = await anywhere(`${baseUrl}/c/${inbox.publicId}`, { method: 'POST', body })
        await answer.arrayBuffer()
        // Exhausted inboxes refuse, and are not asked again.
        if (answer.status === 401) inboxes.splice(inboxes.indexOf(inbox), 1)
        if (answer.status !== 204) return
        acknowledged++
        told.stored.get(inbox.publicId)?.add(body)
      }),
    )
  }

  async function buyAndRead(): Promise<void> {
    const data = randomBytes(64 + Math.floor(Math.random() * 4_000))
    const sealed = await sealWhisper({ data: new Uint8Array(data) })
    const whisper = await purchase('a WHISPER', (terms) =>
      mayfly.buyWhisper({ ...terms, sealed, readLimit: READS }),
    )
    if (!whisper) return
    const reads = { sold: READS, asked: 0, answered: 0 }
    told.reads.set(whisper.publicId, reads)
    // One read stays, so that the row is there for the books; a lost answer has spent its read.
    for (let i = 0; i < READS - 1; i++) {
      reads.asked++
      const bytes = await mayfly.fetchWhisper(whisper.code).catch(() => null)
      if (!bytes) continue
      acknowledged++
      reads.answered++
      if (!Buffer.from(bytes).equals(sealed.envelope)) surprises.push('a WHISPER has other bytes')
    }
  }

  async function ping(): Promise<void> {
    let monitor = monitors[Math.floor(Math.random() * monitors.length)]
    if (!monitor) {
      monitor = (await purchase('a monitor', (terms) => mayfly.buyPulse(terms))) ?? undefined
      if (!monitor) return
      monitors.push(monitor)
    }
    await mayfly.pulse(monitor).ping()
    acknowledged++
    told.pinged.set(monitor.publicId, (told.pinged.get(monitor.publicId) ?? 0) + 1)
  }

  /** Asks for a quote and goes away, as most visitors do. */
  async function leave(): Promise<void> {
    await anywhere(`${baseUrl}/api/payments/whisper`, {
      method: 'POST',
      headers: {
        'content-type': 'application/octet-stream',
        'idempotency-key': randomUUID(),
        'x-whisper-plan': 'spark',
      },
      body: randomBytes(500),
    }).then((answer) => answer.arrayBuffer())
  }

  const WORK = [buyInbox, sendEvents, sendEvents, sendEvents, buyAndRead, ping, ping, leave]

  const clients = Array.from({ length: CLIENTS }, async (_, i) => {
    for (let turn = i; !isStopping; turn++) {
      // What is lost outside of a purchase was promised to nobody.
      await WORK[turn % WORK.length]?.().catch(() => wait(PAUSE_MS))
    }
  })

  return {
    told,
    statuses,
    surprises,
    acknowledged: () => acknowledged,
    async stop() {
      isStopping = true
      await Promise.all(clients)
    },
    abandon() {
      isStopping = true
      abandoned.abort()
    },
  }
}
