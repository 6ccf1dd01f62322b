/** Admits one request for one receipt, and answers repeats with the same receipt. */
import { rfc3339Seconds, type SteadyClock } from '../lib/clock.ts'
import type { GateReceipt } from '../protocol/gate-receipt.ts'
import { encodeReceipt } from '../protocol/payment-auth.ts'
import type { ReplayStore } from './replay-store.ts'
import { createRuns, type Run } from './runs.ts'
import type { Service } from './service.ts'
import { type AnswerOf, createStoredAnswers } from './stored-answers.ts'
import { type Decision, type Refused, refusal, unavailable, type Visit } from './visit.ts'

/** The Retry-After while a run has not ended, or another server may have it. */
const COME_AGAIN = { 'retry-after': '5' }
const DAY_MS = 24 * 60 * 60_000
/** An invoice lives for at most a day, its payment may come 30 days later; one day for clock skew. */
const REMEMBER_MS = 32 * DAY_MS
/**
 * An expired receipt that is older is never renewed: the store forgets its use after `REMEMBER_MS`,
 * while the service keeps a paid intent forever. The two days between them are for clock skew.
 */
const SURE_MS = 30 * DAY_MS
/** The allowed difference between our clock and that of the service, which dates receipts. */
export const SKEW_MS = 60_000
/** A first receipt, two after give-backs, one that the operator may grant, and one to spare. */
const MAX_RECEIPTS_TRIED = 5

export function createAdmissions(deps: {
  service: Service
  store: ReplayStore
  storesAnswers: boolean
  waitMs: number
  clock: SteadyClock
}) {
  const { service, store, waitMs, clock } = deps
  const runs = createRuns()
  const answers = deps.storesAnswers ? createStoredAnswers(service.now) : null

  /** Admits a request with the newest receipt of its intent, if that receipt is unused. */
  async function enter(first: string, visit: Visit, challengeId: string | null): Promise<Decision> {
    let text = first
    let newest = -1
    const stopAt = clock.monotonic() + waitMs
    for (let i = 0; i < MAX_RECEIPTS_TRIED; i++) {
      const read = await service.readReceipt(text, visit)
      if (!read) return refusal(403, 'invalid receipt')
      const { receipt, isExpired } = read
      const number = receipt.gb ?? 0
      if (number <= newest) break
      newest = number
      if (visit.isGone()) return unavailable(null)
      const { run, isFirst, isSure } = await claimRun(receipt, isExpired)
      if (isFirst && run && !isExpired) return admit({ text, receipt, visit, challengeId, run })
      // Nobody has used it and now nobody can, so a fresh one takes its place.
      if (isFirst && run) await run.failed()
      const withinMs = Math.max(0, stopAt - clock.monotonic())
      const refused = await outcomeOfRun({ run, receipt, visit, withinMs })
      if (refused) return refused
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
    // An expired receipt may be renewed if it was never used. Only a store that remembers the time
    // of the receipt can tell.
    const isSure = !isExpired || (await isRemembered(receipt))
    const isFirst = isSure && (await store.add(key, REMEMBER_MS))
    const run = isFirst
      ? runs.begin(key, () => service.giveBack(receipt, { isUnused: isExpired }))
      : runs.get(key)
    return { run, isFirst, isSure }
  }

  /** Whether the store would know of any use of this receipt, on any server. */
  async function isRemembered({ iat }: GateReceipt): Promise<boolean> {
    // The store tells the time by this server's clock, and receipts by the service's.
    if (!store.since || Math.abs(service.aheadMs()) > SKEW_MS) return false
    return iat * 1000 > Math.max((await store.since()) + SKEW_MS, clock.now() - SURE_MS)
  }

  /** The answer for a used receipt, or null if the service may have a newer one. */
  async function outcomeOfRun({
    run,
    receipt,
    visit,
    withinMs,
  }: {
    run: Run | null
    receipt: GateReceipt
    visit: Visit
    withinMs: number
  }): Promise<Refused | null> {
    if (run && !(await run.ended(withinMs))) {
      return refusal(409, 'request in progress', COME_AGAIN)
    }
    const answer = answers?.take(answerOf(receipt, visit))
    if (answer) return { kind: 'refused', ...answer }
    await run?.giveBack()
    switch (run?.state()) {
      case 'spent':
        return refusal(409, 'receipt used')
      case 'give-back pending':
        return unavailable(null)
      default:
        return null
    }
  }

  function admit({
    text,
    receipt,
    visit,
    challengeId,
    run,
  }: {
    text: string
    receipt: GateReceipt
    visit: Visit
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
      wantsAnswer: answers !== null && visit.method !== 'HEAD',
      spent(answer) {
        // Stored before the run ends, so that waiting repeats find it.
        if (answer) answers?.keep(answerOf(receipt, visit), answer, receipt.exp * 1000)
        run.spent()
      },
      failed: () => run.failed(),
    }
  }

  return { enter }
}

/** The receipt was used outside of this process. Another server may still run it, or give it back. */
const usedElsewhere = (): Refused => refusal(409, 'receipt used', COME_AGAIN)

const answerOf = ({ intent, req }: GateReceipt, { header }: Visit): AnswerOf => ({
  intent,
  requestDigest: req,
  cookie: header('cookie'),
  authorization: header('authorization'),
})

function paymentReceipt(challengeId: string, { ph: reference, iat }: GateReceipt): string {
  return encodeReceipt({
    challengeId,
    method: 'lightning',
    reference,
    status: 'success',
    timestamp: rfc3339Seconds(iat * 1000),
  })
}
