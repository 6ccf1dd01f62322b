/** What is asked of GATE, and whether the answer keeps its promises. */
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { phraseOf } from '../run-context.ts'
import type { Answer, Ask } from '../world/service.ts'
import {
  claimsOf,
  digestOf,
  type GateAuthorization,
  type GateQuote,
  hashOf,
  type Project,
  type Town,
} from './town.ts'

const INTENT = /^\/api\/gate\/intents\/(gate_intent_\w+)(\/prove|\/give-back)?$/
/** Without the operator. */
const MAX_GIVE_BACKS = 2

/** Asks the service for a project or a payer, and judges the answer. */
export async function askGate(
  town: Town,
  who: string,
  { project, ...ask }: Ask & { project: Project },
): Promise<Answer | null> {
  const beganAt = town.run.world.scheduler.elapsed()
  const [, intentId, step] = INTENT.exec(ask.target) ?? []
  if (step === '/give-back') noteGiveBack(town, intentId as string, String(ask.body))
  const answer = await town.run.ask(who, ask)
  if (answer === null) return null
  const exchange = { town, who, project, ask, answer }
  judgeCapability(exchange, beganAt)
  if (ask.target === '/api/gate/intents' && answer.status === 402) judgeQuote(exchange)
  if (intentId === undefined || step === '/give-back') return answer
  if (answer.status === 200) judgeAuthorization(exchange, intentId)
  if (step === '/prove') judgeProof(exchange, intentId)
  return answer
}

type Exchange = { town: Town; who: string; project: Project; ask: Ask; answer: Answer }

const headerOf = ({ headers = {} }: Ask, name: string): string => headers[name] ?? ''

function noteGiveBack({ givenBack }: Town, intentId: string, body: string): void {
  const { receiptId } = JSON.parse(body) as { receiptId: string }
  givenBack.set(intentId, (givenBack.get(intentId) ?? new Set()).add(receiptId))
}

/** An old capability opens nothing once the new one was made. */
function judgeCapability({ town, who, ask, answer }: Exchange, beganAt: number): void {
  const capability = headerOf(ask, 'authorization').replace(/^Bearer /, '')
  const endedAt = town.ended.get(capability)
  const isRefused = [401, 429, 500, 503].includes(answer.status)
  if (endedAt !== undefined && endedAt < beganAt && !isRefused) {
    town.run.ledger.break('an old capability ends', `${who} got ${answer.status} ${answer.text}`)
  }
}

function judgeQuote({ town, who, project, ask, answer }: Exchange): void {
  const { ledger } = town.run
  const quote = JSON.parse(answer.text) as GateQuote
  const { intentId, paymentHash } = quote
  const routeId = headerOf(ask, 'x-gate-route')
  const [method, path] = [headerOf(ask, 'x-gate-method'), headerOf(ask, 'x-gate-path')]
  const digest = digestOf(project.projectId, { routeId, method, path, body: ask.body ?? '' })
  if (digest !== quote.requestDigest) {
    ledger.break('one request, one invoice', `${who} got the quote of another request: ${intentId}`)
  }
  const key = `${project.projectId} ${headerOf(ask, 'idempotency-key')}`
  for (const name of [key, paymentHash]) {
    const other = town.intentOf.get(name) ?? intentId
    town.intentOf.set(name, other)
    if (other !== intentId)
      ledger.break('one request, one invoice', `${who}: ${name} is ${other} and ${intentId}`)
  }
  const first = town.quotes.get(intentId) ?? quote
  town.quotes.set(intentId, first)
  if (first.bolt11 !== quote.bolt11 || first.amountSats !== quote.amountSats) {
    ledger.break('one request, one invoice', `${who}: ${intentId} has two invoices`)
  }
  const prices = town.prices.get(`${project.projectId} ${routeId}`)
  const invoice = decodeInvoice(quote.bolt11)
  // Times are compared with a clock that may have jumped since the provider was asked.
  const isAgreed =
    (town.hasJumps || project.payee.offered.has(paymentHash)) &&
    invoice.paymentHash === paymentHash &&
    invoice.network === 'regtest' &&
    invoice.amountMsat === quote.amountSats * 1000 &&
    prices?.has(quote.amountSats) === true &&
    !town.run.world.node.invoices.has(paymentHash)
  if (!isAgreed) ledger.break('an invoice as agreed', `${who} was shown ${quote.bolt11}`)
}

function judgeAuthorization({ town, who, project, answer }: Exchange, intentId: string): void {
  const { ledger } = town.run
  const authorization = JSON.parse(answer.text) as GateAuthorization
  const { receipt, paymentHash, verifiedBy } = authorization
  const claims = claimsOf(receipt)
  const quote = town.quotes.get(intentId)
  const isOwn =
    claims.intent === intentId &&
    claims.aud === project.projectId &&
    answer.lines('gate-receipt').join() === receipt &&
    (quote === undefined ||
      (claims.req === quote.requestDigest &&
        claims.ph === quote.paymentHash &&
        claims.sat === quote.amountSats))
  if (!isOwn) ledger.break('a receipt opens its own request', `${who} got ${answer.text}`)
  const isProven =
    verifiedBy === 'preimage'
      ? town.preimages.has(paymentHash)
      : project.payee.called.has(paymentHash)
  if (!isProven) ledger.break('a receipt for a payment', `${who} got ${answer.text}`)
  const number = claims.gb ?? 0
  const receipts = town.receipts.get(intentId) ?? new Map<number, string>()
  town.receipts.set(intentId, receipts)
  const same = receipts.get(number) ?? receipt
  receipts.set(number, same)
  const asked = [...(town.givenBack.get(intentId) ?? [])]
  // Of the failed runs two count. What the operator honours comes on top.
  const failed = asked.filter((each) => !each.startsWith('honoured '))
  const mayHave = asked.length - failed.length + Math.min(failed.length, MAX_GIVE_BACKS)
  if (same !== receipt || number > mayHave) {
    ledger.break('one payment, one receipt', `${who} got receipt ${number} of ${intentId} anew`)
  }
}

function judgeProof({ town, who, ask, answer }: Exchange, intentId: string): void {
  const { ledger } = town.run
  const quote = town.quotes.get(intentId)
  const { preimage } = JSON.parse(String(ask.body)) as { preimage: string }
  if (!quote) return
  const isRight = hashOf(preimage) === quote.paymentHash
  if (!isRight && answer.status === 200) {
    ledger.break('a receipt for a payment', `${who} got one for ${intentId} by another preimage`)
  }
  const isRefused =
    answer.status === 402 || (answer.status === 401 && phraseOf(answer) === 'wrong preimage')
  if (isRight && isRefused) {
    ledger.break('paid means a receipt', `${who} has paid ${intentId}: ${answer.text}`)
  }
}
