/** Lets one request in for one receipt, and answers those who come again with it. */
import { rfc3339Seconds } from '../lib/clock.ts'
import type { GateReceipt } from '../protocol/gate-receipt.ts'
import { encodeReceipt } from '../protocol/payment-auth.ts'
import type { ReadReceipt } from './receipt-reader.ts'
import { type Refused, refusal, unavailable } from './refusals.ts'
import type { ReplayStore } from './replay-store.ts'
import { createRuns, type Run } from './runs.ts'
import type { ServiceCalls } from './service-calls.ts'
import { type AnswerOf, createStoredAnswers } from './stored-answers.ts'
import type { Decision, Visit } from './visit.ts'

/** For a run of a request that has not ended, or that another server may be at. */
const COME_AGAIN_SECONDS = 5
const DAY_MS = 24 * 60 * 60_000
/** An invoice lives for a day at most, and waits for its payment for 30 days after; and a day for clocks. */
const REMEMBER_MS = 32 * DAY_MS
/**
 * A receipt that is older and ran out lets nobody in any more, and none follows it: the service keeps
 * a paid intent for ever, and the guard forgets after `REMEMBER_MS`. The days between are for clocks.
 */
const SURE_MS = 30 * DAY_MS
/** Between our clock and the service's, which dates receipts. */
const SKEW_MS = 60_000
/** A first receipt and two that follow give-backs; one more where the operator honours it, and one to spare. */
const MAX_RECEIPTS_TRIED = 5

export type Admissions = {
  /** Lets a request in with the newest receipt of its intent, if that let nobody in yet. */
  enter(receipt: string, visit: Visit, challengeId: string | null): Promise<Decision>
}

export function createAdmissions(deps: {
  service: ServiceCalls
  readReceipt: ReadReceipt
  store: ReplayStore
  storesAnswers: boolean
  waitMs: number
  now: () => number
}): Admissions {
  const { service, readReceipt, store, waitMs, now } = deps
  const runs = createRuns()
  const answers = deps.storesAnswers ? createStoredAnswers(now) : null

  async function enter(first: string, visit: Visit, challengeId: string | null): Promise<Decision> {
    let text = first
    let newest = -1
    const stopAt = performance.now() + waitMs
    for (let i = 0; i < MAX_RECEIPTS_TRIED; i++) {
      const read = await readReceipt(text, visit)
      if (!read) return refusal(403, 'invalid receipt')
      const { receipt, isExpired } = read
      const number = receipt.gb ?? 0
      if (number <= newest) break
      newest = number
      if (visit.isGone()) return unavailable(null)
      const { run, isFirst } = await claimRun(receipt, isExpired)
      if (isFirst && run && !isExpired) return admit({ text, receipt, visit, challengeId, run })
      if (isFirst && run) await run.failed()
      const withinMs = Math.max(0, stopAt - performance.now())
      const refused = await outcomeOfRun({ run, receipt, visit, withinMs })
      if (refused) return refused
      const next = await service.newestReceipt(receipt.intent, visit)
      if (next === null || next === text) {
        return isExpired && !run ? refusal(403, 'invalid receipt') : usedElsewhere()
      }
      text = next
    }
    return usedElsewhere()
  }

  /** The run of a receipt: a new one where this is the first to come with it. */
  async function claimRun(
    receipt: GateReceipt,
    isExpired: boolean,
  ): Promise<{ run: Run | null; isFirst: boolean }> {
    const key = `${receipt.intent}.${receipt.gb ?? 0}`
    // An expired receipt may be followed by another if it let nobody in, and only who remembers knows.
    const isSure = !isExpired || (await isRemembered(receipt))
    const isFirst = isSure && (await store.add(key, REMEMBER_MS))
    const run = isFirst ? runs.begin(key, () => service.giveBack(receipt)) : runs.get(key)
    return { run, isFirst }
  }

  /** Whether the guard would know it if a receipt of that time had let somebody in, anywhere. */
  async function isRemembered({ iat }: GateReceipt): Promise<boolean> {
    if (!store.since) return false
    return iat * 1000 > Math.max((await store.since()) + SKEW_MS, now() - SURE_MS)
  }

  /** The answer to a receipt that was used already, or null where there may be a newer one. */
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
      return refusal(409, 'request in progress', COME_AGAIN_SECONDS)
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
        // Before the run ends, so that whoever waits for that finds it.
        if (answer) answers?.keep(answerOf(receipt, visit), answer, receipt.exp * 1000)
        run.spent()
      },
      failed: () => run.failed(),
    }
  }

  return { enter }
}

/** The receipt was used, in no run that this process knows: another server may be at it, or give it back. */
const usedElsewhere = (): Refused => refusal(409, 'receipt used', COME_AGAIN_SECONDS)

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
