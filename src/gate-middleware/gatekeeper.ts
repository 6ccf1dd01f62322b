/**
 * Decides over one visit to a paid route: ask for payment, or let it in. Whatever goes wrong keeps
 * the visitor out, and never asks one who has paid to pay again.
 */

import {
  askForIntent,
  askToGiveBack,
  fetchGateKeys,
  type GateProject,
  intentPath,
  outcomeOf,
  type ProtectedRequest,
  verifyFor,
} from '../client/gate.ts'
import { type Answer, createHttp, errorOf } from '../client/http.ts'
import { type GateReceipt, verifyReceipt } from '../protocol/gate-receipt.ts'
import { encodeReceipt } from '../protocol/payment-auth.ts'
import { createKeyRing } from './keys.ts'
import { type Proof, prefersPayment, readProof } from './proof.ts'
import { type Refused, refusal, relay, unavailable } from './refusals.ts'
import { memoryStore, type ReplayStore } from './replay-store.ts'
import { createRuns, type GivenBack, type Run } from './runs.ts'
import {
  type AnswerOf,
  createStoredAnswers,
  type Answer as StoredAnswer,
} from './stored-answers.ts'

export type GateOptions = GateProject & {
  /** Where the GATE service is. */
  url: string
  /** The address that it must have signed receipts as. Default: whatever its keys have signed. */
  issuer?: string
  /** Where it is remembered who was let in. Default: in this process, until it ends. */
  store?: ReplayStore
  /** Repeats small answers to payers whose connection was lost. Default: false. */
  storedAnswers?: boolean
  /** How long a repeat waits for the run of its request. Default: 10 seconds. */
  waitMs?: number
  /**
   * The address of a visitor, where the connection's own is not it: behind a proxy, and for
   * fetch-style handlers. Its network, and no more, is told to the service.
   */
  visitorAddress?: (request: object) => string | null
  fetch?: typeof globalThis.fetch
  /** Unix milliseconds. */
  now?: () => number
}

export type Visit = ProtectedRequest & {
  body: Uint8Array<ArrayBuffer>
  /** The network of the visitor, where it is known. */
  network: string | null
  /** A header's value, several lines joined with `, `; null where there is none. */
  header(name: string): string | null
  /** Whether nobody waits for an answer any more. */
  isGone(): boolean
}

/** What a form tells of the handler that it let run. */
export type Admission = {
  receipt: GateReceipt
  headers: Record<string, string>
  /** Whether a small whole answer is wanted with `spent`. */
  wantsAnswer: boolean
  spent(answer?: StoredAnswer): void
  /** The server failed, before the eyes of its client. */
  failed(): Promise<void>
}

export type Decision =
  /** The handler may run, once. */
  | ({ kind: 'admitted' } & Admission)
  /** The answer, as it is. */
  | Refused

export type Gatekeeper = { decide(visit: Visit): Promise<Decision> }

/** The service asks the provider, and that takes 10 seconds at most. */
const TIMEOUT_MS = 15_000
const WAIT_MS = 10_000
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
const RECEIPTS_TRIED = 5

export function createGatekeeper(options: GateOptions): Gatekeeper {
  const { projectId, capability, url, now = Date.now, waitMs = WAIT_MS } = options
  const issuer = options.issuer?.replace(/\/+$/, '') ?? null
  const store = options.store ?? memoryStore(now)
  const fetch: typeof globalThis.fetch = (input, init) =>
    (options.fetch ?? globalThis.fetch)(input, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
  const http = createHttp(url, fetch)
  const ring = createKeyRing(() => fetchGateKeys(http), now)
  const runs = createRuns()
  const answers = options.storedAnswers ? createStoredAnswers(now) : null

  // A store begins now, not with the first payment, so that it is sure of that one too.
  void (async () => store.since?.())().catch(() => {})

  async function ask(visit: Visit): Promise<Decision> {
    const answer = await askForIntent(http, { projectId, capability }, visit, {
      // Each visit has its own: two visitors never see one invoice.
      'idempotency-key': crypto.randomUUID(),
      ...(prefersPayment(visit) ? { 'x-payment-protocol': 'payment' } : {}),
      ...told(visit),
    })
    if (answer.status === 402) return relay(answer)
    // The path is one that servers read differently, or the route is not registered.
    if (answer.status === 400) return refusal(400, 'invalid binding')
    return unavailable(answer)
  }

  const poll = (intentId: string, visit: Visit, bound: Record<string, string> = {}) =>
    http.ask({
      path: intentPath(intentId),
      token: capability,
      headers: { ...bound, ...told(visit) },
    })

  /**
   * By the capability, and without the request's own facts: the receipt has those, and is compared.
   * So whoever brings the right preimage with another request is told that, and gets no invoice.
   */
  const proveIntent = ({ intentId, preimage }: Proven, visit: Visit) =>
    http.ask({
      method: 'POST',
      path: `${intentPath(intentId)}/prove`,
      token: capability,
      headers: { 'x-gate-project': projectId, 'content-type': 'application/json', ...told(visit) },
      body: JSON.stringify({ preimage }),
    })

  /** By the payer's credential, whose challenge the service compares with its own. */
  const proveCredential = ({ intentId, preimage, line }: Proven & { line: string }, visit: Visit) =>
    http.ask({
      method: 'POST',
      path: `${intentPath(intentId)}/prove`,
      headers: {
        'x-gate-project': projectId,
        'x-gate-method': visit.method,
        'x-gate-path': visit.path,
        'content-type': 'application/json',
        authorization: line,
      },
      body: JSON.stringify({ preimage }),
    })

  /** What the service says of a proof; `challengeId` where it knew the challenge for its own. */
  async function prove(
    proof: Exclude<Proof, { kind: 'none' | 'receipt' | 'unreadable' }>,
    visit: Visit,
  ): Promise<{ answer: Answer; challengeId: string | null }> {
    switch (proof.kind) {
      case 'intent': {
        const bound = { 'x-gate-method': visit.method, 'x-gate-path': visit.path }
        const answer = await poll(proof.intentId, visit, bound)
        if (answer.status !== 401) return { answer, challengeId: null }
        // Of another request. If that is paid for, this one is not asked to pay.
        const other = await poll(proof.intentId, visit)
        return { answer: other.status === 200 ? other : answer, challengeId: null }
      }
      case 'credential': {
        const answer = await proveCredential(proof, visit)
        if (answer.status === 200) return { answer, challengeId: proof.challengeId }
        // The challenge may be strange where the payment is not: its secret may be lost.
        return { answer: await proveIntent(proof, visit), challengeId: null }
      }
      case 'preimage':
        return { answer: await proveIntent(proof, visit), challengeId: null }
    }
  }

  async function judge(visit: Visit): Promise<Decision> {
    const proof = readProof(visit)
    if (proof.kind === 'none' || proof.kind === 'unreadable') return ask(visit)
    if (proof.kind === 'receipt') return enter(proof.receipt, visit, null)
    const { answer, challengeId } = await prove(proof, visit)
    if (answer.status === 200) {
      const outcome = outcomeOf(answer)
      return outcome.settled ? enter(outcome.receipt, visit, challengeId) : unavailable(answer)
    }
    if (answer.status === 402) return relay(answer)
    const { phrase } = errorOf(answer)
    // Of nobody's or another project's intent: this request has a price of its own.
    if (answer.status === 401 && phrase === 'intent mismatch') return ask(visit)
    if (answer.status === 401 && phrase === 'wrong preimage') return refusal(403, phrase)
    return unavailable(answer)
  }

  /** Lets a request in with the newest receipt of its intent, if that let nobody in yet. */
  async function enter(first: string, visit: Visit, challengeId: string | null): Promise<Decision> {
    let text = first
    let newest = -1
    const stopAt = performance.now() + waitMs
    for (let i = 0; i < RECEIPTS_TRIED; i++) {
      const read = await readReceipt(text, visit)
      if (!read) return refusal(403, 'invalid receipt')
      const { receipt, isOver } = read
      const number = receipt.gb ?? 0
      if (number <= newest) break
      newest = number
      if (visit.isGone()) return unavailable(null)
      const key = `${receipt.intent}.${number}`
      // One that is over may be followed by another if it let nobody in, and only who remembers knows.
      const isSure = !isOver || (await isRemembered(receipt))
      const isFirst = isSure && (await store.add(key, REMEMBER_MS))
      const run = isFirst ? runs.begin(key, () => giveBack(receipt)) : runs.get(key)
      if (isFirst && run && !isOver) return admit(text, receipt, visit, { challengeId, run })
      if (isFirst && run) await run.failed()
      const refused = await outcomeOfRun(
        run,
        receipt,
        visit,
        Math.max(0, stopAt - performance.now()),
      )
      if (refused) return refused
      const next = await newestReceipt(receipt.intent, visit)
      if (next === null || next === text) {
        return isOver && !run ? refusal(403, 'invalid receipt') : usedElsewhere()
      }
      text = next
    }
    return usedElsewhere()
  }

  /** Whether the guard would know it if a receipt of that time had let somebody in, anywhere. */
  async function isRemembered({ iat }: GateReceipt): Promise<boolean> {
    if (!store.since) return false
    return iat * 1000 > Math.max((await store.since()) + SKEW_MS, now() - SURE_MS)
  }

  /** What there is to say of a receipt that is taken, or null where a newer one may be there. */
  async function outcomeOfRun(
    run: Run | null,
    receipt: GateReceipt,
    visit: Visit,
    withinMs: number,
  ): Promise<Refused | null> {
    if (run && !(await run.ended(withinMs))) {
      return refusal(409, 'request in progress', COME_AGAIN_SECONDS)
    }
    const answer = answers?.take(answerOf(receipt, visit))
    if (answer) return { kind: 'refused', ...answer }
    await run?.giveBack()
    switch (run?.state()) {
      case 'spent':
        return refusal(409, 'receipt used')
      case 'owed':
        return unavailable(null)
      default:
        return null
    }
  }

  function admit(
    text: string,
    receipt: GateReceipt,
    visit: Visit,
    { challengeId, run }: { challengeId: string | null; run: Run },
  ): Decision {
    const { ph, iat, exp } = receipt
    return {
      kind: 'admitted',
      receipt,
      headers: {
        'gate-receipt': text,
        'cache-control': 'private, no-store',
        ...(challengeId ? { 'payment-receipt': paymentReceipt(challengeId, ph, iat) } : {}),
      },
      wantsAnswer: answers !== null && visit.method !== 'HEAD',
      spent(answer) {
        // Before the run ends, so that whoever waits for that finds it.
        if (answer) answers?.keep(answerOf(receipt, visit), answer, exp * 1000)
        run.spent()
      },
      failed: () => run.failed(),
    }
  }

  /** The receipt, if it is for this request; whether its five minutes are over. */
  async function readReceipt(
    text: string,
    visit: Visit,
  ): Promise<{ receipt: GateReceipt; isOver: boolean } | null> {
    const facts = { projectId, issuer, request: visit, now: now() }
    let keys = await ring.keys()
    let verdict = await verifyFor(text, keys, facts)
    if (verdict.outcome === 'unknown key') {
      keys = await ring.keys('renewed')
      verdict = await verifyFor(text, keys, facts)
    }
    if (verdict.outcome === 'ok') return { receipt: verdict.receipt, isOver: false }
    if (verdict.outcome !== 'refused' || verdict.reason !== 'expired') return null
    const record = await verifyReceipt(text, keys)
    return record.outcome === 'ok' ? { receipt: record.receipt, isOver: true } : null
  }

  async function newestReceipt(intentId: string, visit: Visit): Promise<string | null> {
    const answer = await poll(intentId, visit)
    if (answer.status !== 200) return null
    const outcome = outcomeOf(answer)
    return outcome.settled ? outcome.receipt : null
  }

  async function giveBack({ intent: intentId, jti: receiptId }: GateReceipt): Promise<GivenBack> {
    const { status } = await askToGiveBack(http, { capability, intentId, receiptId })
    if (status === 204) return 'recorded'
    return status === 409 ? 'refused' : 'unknown'
  }

  return {
    async decide(visit) {
      try {
        return await judge(visit)
      } catch {
        return unavailable(null)
      }
    },
  }
}

type Proven = { intentId: string; preimage: string }

/** What the service limits new intents by, from a project's own server. */
const told = ({ network }: Visit): Record<string, string> =>
  network === null ? {} : { 'x-gate-visitor': network }

/** Taken, and not by a run that this process knows: another server may be at it, or give it back. */
const usedElsewhere = (): Refused => refusal(409, 'receipt used', COME_AGAIN_SECONDS)

const answerOf = ({ intent, req }: GateReceipt, { header }: Visit): AnswerOf => ({
  intent,
  requestDigest: req,
  cookie: header('cookie'),
  authorization: header('authorization'),
})

function paymentReceipt(challengeId: string, paymentHash: string, issuedAt: number): string {
  return encodeReceipt({
    challengeId,
    method: 'lightning',
    reference: paymentHash,
    status: 'success',
    timestamp: `${new Date(issuedAt * 1000).toISOString().slice(0, 19)}Z`,
  })
}
