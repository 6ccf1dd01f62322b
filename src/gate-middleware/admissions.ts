/** Admits one request for one receipt, and refuses repeats with the same receipt. */
import { rfc3339Seconds, type SteadyClock } from '../lib/clock.ts'
import type { GateReceipt } from '../protocol/gate-receipt.ts'
import { encodeReceipt } from '../protocol/payment-auth.ts'
import type { ReplayStore } from './replay-store.ts'
import type { GivenBack, Service } from './service.ts'
import { type Decision, type Refused, refusal, unavailable, type Visit } from './visit.ts'

/** The Retry-After while a run has not ended, or another server may have it. */
const COME_AGAIN = { 'retry-after': '5' }
const DAY_MS = 24 * 60 * 60_000
/** An invoice lives for at most a day, its payment may come 30 days later; one day for clock skew. */
const REMEMBER_MS = 32 * DAY_MS
/**
 * An expired receipt that is older lets nobody in: the store forgets its use after `REMEMBER_MS`,
 * while the service keeps a paid intent forever. The two days between them are for clock skew.
 */
const SURE_MS = 30 * DAY_MS
/** The allowed difference between our clock and that of the service, which dates receipts. */
export const SKEW_MS = 60_000
/** A first receipt, two after give-backs, one that the operator may grant, and one to spare. */
const MAX_RECEIPTS_TRIED = 5
/** The maximum of remembered runs. A forgotten one does not run again: the store has its key. */
const MAX_RUNS = 10_000

export function createAdmissions(deps: {
  service: Service
  store: ReplayStore
  clock: SteadyClock
}) {
  const { service, store, clock } = deps
  /** The runs of this process, by intent and number of the receipt; the oldest first. */
  const runs = new Map<string, Run>()

  /** Admits a request with the newest receipt of its intent, if that receipt is unused. */
  async function enter(first: string, visit: Visit, challengeId: string | null): Promise<Decision> {
    let text = first
    let newest = -1
    for (let i = 0; i < MAX_RECEIPTS_TRIED; i++) {
      const read = await service.readReceipt(text, visit)
      if (!read) return refusal(403, 'invalid receipt')
      const { receipt, isExpired } = read
      const number = receipt.gb ?? 0
      if (number <= newest) break
      newest = number
      if (visit.isGone()) return unavailable(null)
      const { run, isFirst, isSure } = await claimRun(receipt, isExpired)
      if (isFirst && run) return admit({ text, receipt, challengeId, run })
      await run?.giveBack()
      switch (run?.state()) {
        case 'running':
          return refusal(409, 'request in progress', COME_AGAIN)
        case 'spent':
          return refusal(409, 'receipt used')
        case 'failed':
          return unavailable(null)
      }
      const next = await service.newestReceipt(receipt.intent, visit)
      if (next === null || next === text) {
        return run || isSure ? usedElsewhere() : refusal(403, 'invalid receipt')
      }
      text = next
    }
    return usedElsewhere()
  }

  /** The run of a receipt. `isFirst` if this request started it, and `isSure` if another use would be known. */
  async function claimRun(
    receipt: GateReceipt,
    isExpired: boolean,
  ): Promise<{ run: Run | null; isFirst: boolean; isSure: boolean }> {
    const key = `${receipt.intent}.${receipt.gb ?? 0}`
    // An expired receipt still lets its request in if it was never used. Only a store that remembers
    // the time of the receipt can tell.
    const isSure = !isExpired || (await isRemembered(receipt))
    const isFirst = isSure && (await store.add(key, REMEMBER_MS))
    if (isFirst) begin(key, () => service.giveBack(receipt))
    return { run: runs.get(key) ?? null, isFirst, isSure }
  }

  function begin(key: string, giveBack: () => Promise<GivenBack>): void {
    runs.set(key, createRun(giveBack))
    for (const old of runs.keys()) {
      if (runs.size <= MAX_RUNS) break
      runs.delete(old)
    }
  }

  /** Whether the store would know of any use of this receipt, on any server. */
  async function isRemembered({ iat }: GateReceipt): Promise<boolean> {
    // The store tells the time by this server's clock, and receipts by the service's.
    if (!store.since || Math.abs(service.aheadMs()) > SKEW_MS) return false
    return iat * 1000 > Math.max((await store.since()) + SKEW_MS, clock.now() - SURE_MS)
  }

  return { enter }
}

type Run = ReturnType<typeof createRun>

/** The run of a handler. `failed`: its receipt must be given back, and the service does not know it yet. */
function createRun(recordGiveBack: () => Promise<GivenBack>) {
  let state: 'running' | 'spent' | 'failed' | 'given back' = 'running'

  /** Tells the service of a failure. */
  async function giveBack(): Promise<void> {
    if (state !== 'failed') return
    const given = await recordGiveBack().catch((): GivenBack => 'unknown')
    if (given === 'recorded') state = 'given back'
    if (given === 'refused') state = 'spent'
  }

  return {
    state: () => state,
    giveBack,
    /** The handler has finished, or its client left. The receipt is not given back. */
    spent() {
      if (state === 'running') state = 'spent'
    },
    /** The server failed while its client was connected. Resolves after one attempt to record that. */
    async failed() {
      if (state !== 'running') return
      state = 'failed'
      await giveBack()
    },
  }
}

function admit({
  text,
  receipt,
  challengeId,
  run,
}: {
  text: string
  receipt: GateReceipt
  challengeId: string | null
  run: Run
}): Decision {
  return {
    kind: 'admitted',
    receipt,
    headers: {
      'gate-receipt': text,
      'cache-control': 'private, no-store',
      ...(challengeId ? { 'payment-receipt': paymentReceipt(challengeId, receipt) } : {}),
    },
    spent: run.spent,
    failed: run.failed,
  }
}

/** The receipt was used outside of this process. Another server may still run it, or give it back. */
const usedElsewhere = (): Refused => refusal(409, 'receipt used', COME_AGAIN)

function paymentReceipt(challengeId: string, { ph: reference, iat }: GateReceipt): string {
  return encodeReceipt({
    challengeId,
    method: 'lightning',
    reference,
    status: 'success',
    timestamp: rfc3339Seconds(iat * 1000),
  })
}
