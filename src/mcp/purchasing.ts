/**
 * The tools that buy. An unpaid purchase is a result with its challenge, in the form that MCP clients of the
 * Payment scheme read; the credential of their retry becomes the Authorization header of the same purchase.
 */
import { ERRORS } from '../http/errors.ts'
import { base64url, utf8, utf8Text } from '../lib/bytes.ts'
import { isId } from '../lib/ids.ts'
import { type Json, jcs } from '../lib/jcs.ts'
import { isObject, objectIn } from '../lib/json.ts'
import { SOLD_PRODUCTS } from '../lib/product-names.ts'
import type { PurchaseResult, Quote } from '../mcp-tools/purchases.ts'
import { CAPABILITY_META } from '../mcp-tools/shared.ts'
import { decodeReceipt } from '../protocol/payment-auth.ts'
import {
  bearer,
  bearerIfShown,
  type Call,
  expectJson,
  idIn,
  PaymentRequired,
  productOf,
  Refusal,
  resultOf,
  type Tool,
  type ToolResult,
  text,
} from './call.ts'
import type { Answered } from './own-requests.ts'
import type { PurchaseIds } from './purchase-id.ts'

const CREDENTIAL_META = 'org.paymentauth/credential'
const CHALLENGE_META = 'org.paymentauth/payment-required'
const RECEIPT_META = 'org.paymentauth/receipt'

/** Far below the limit of a request's headers. Credentials of Lightning have about 2 KiB. */
const MAX_CREDENTIAL_CHARS = 12 * 1024

type Purchase = {
  /** Where a product that is not there has no route. */
  path: string
  contentType: string
  headers: Record<string, string>
  body: Uint8Array
}

export type Purchasing = {
  buyInbox: Tool
  buyMonitor: Tool
  extend: Tool
  sendWhisper: Tool
  checkOrder: Tool
}

export function createPurchasing({
  ids,
  publicUrl,
}: {
  ids: PurchaseIds
  publicUrl: () => string
}): Purchasing {
  const selecting =
    (product: string): Tool =>
    (call) =>
      buy(call, { path: `/api/payments/${product}`, headers: {}, ...planBody(call) })

  async function buy(call: Call, purchase: Purchase): Promise<ToolResult> {
    const { purchaseId, credential } = nameOf(call)
    const answered = await call.ask({
      method: 'POST',
      path: purchase.path,
      headers: {
        ...purchase.headers,
        'content-type': purchase.contentType,
        'idempotency-key': purchaseId,
        'x-payment-protocol': 'payment',
        ...(credential === null ? {} : { authorization: `Payment ${credential}` }),
      },
      body: purchase.body,
    })
    if (answered.status === 402) return unpaid(call, purchaseId, expectJson(answered, 402))
    return bought(call, answered, { purchaseId })
  }

  /** The purchase that a call begins or repeats. A payer that repeats only the credential names it by that. */
  function nameOf({ arguments: given, meta }: Call): {
    purchaseId: string
    credential: string | null
  } {
    const paid = meta[CREDENTIAL_META] === undefined ? null : credentialIn(meta[CREDENTIAL_META])
    const named = given.purchaseId ?? paid?.purchaseId
    // A new purchase would have a new invoice, which a client that pays by itself would pay as well.
    if (paid && named === undefined) throw new Refusal(NO_PURCHASE)
    const purchaseId = named === undefined ? ids.make() : text(named)
    if (!ids.isOwn(purchaseId)) throw new Refusal(UNKNOWN_PURCHASE)
    return { purchaseId, credential: paid?.credential ?? null }
  }

  function bought(
    { connection }: Call,
    answered: Answered,
    { purchaseId }: { purchaseId?: string },
  ): ToolResult {
    const { resource, extended, expiresAt } = expectJson(answered)
    const receipt = decodeReceipt(String(answered.headers['payment-receipt'] ?? ''))
    const shown = receipt ? { [RECEIPT_META]: receipt } : {}
    const named = purchaseId === undefined ? {} : { purchaseId }
    // An extension leaves the tokens as they were, and hands out none.
    if (extended === true) {
      const end = text(expiresAt)
      const next = `Paid and extended: it lasts until ${end}, with the tokens that it had.`
      const value: PurchaseResult = {
        state: 'settled',
        ...named,
        extended: { expiresAt: end },
        next,
      }
      return resultOf(value, shown)
    }
    if (!isObject(resource)) throw new Error('a settled purchase has no resource')
    const isVisible = connection.way === 'visible'
    const value: PurchaseResult = {
      ...{ state: 'settled', ...named },
      bought: {
        ...(isVisible ? tokensIn(resource) : {}),
        product: text(resource.product),
        publicId: text(resource.publicId),
        expiresAt: text(resource.expiresAt),
        ...(resource.product === 'catch'
          ? { url: `${publicUrl()}/c/${text(resource.publicId)}` }
          : {}),
      },
      next: isVisible
        ? 'Paid. Save the tokens now: they cannot be recovered after their first use.'
        : `Paid. The tokens are in _meta["${CAPABILITY_META}"] of this result. Save them now: they cannot be recovered after their first use.`,
    }
    return resultOf(value, {
      ...(isVisible ? {} : { [CAPABILITY_META]: resource }),
      ...shown,
    })
  }

  return {
    buyInbox: selecting('catch'),
    buyMonitor: selecting('pulse'),
    async extend(call) {
      const product = productOf(call)
      if (!EXTENDABLE.includes(product)) throw new Refusal(NO_EXTENSION)
      const isNew =
        call.arguments.purchaseId === undefined && call.meta[CREDENTIAL_META] === undefined
      // Only the first call opens an order. Those that repeat it are known by what names the purchase.
      const shown = isNew ? bearer(call) : bearerIfShown(call)
      return buy(call, {
        path: `/api/${product}/${idIn(call)}/extend`,
        headers: shown ? { 'x-owner-token': shown.authorization.replace(/^Bearer +/i, '') } : {},
        ...planBody(call),
      })
    },
    async sendWhisper(call) {
      const { planId, readLimit, revealAt, revealWhen, receipt, ciphertextBase64 } = call.arguments
      return buy(call, {
        path: '/api/payments/whisper',
        contentType: 'application/octet-stream',
        headers: {
          'x-whisper-plan': text(planId),
          ...(readLimit === undefined ? {} : { 'x-whisper-read-limit': String(readLimit) }),
          ...(revealAt === undefined ? {} : { 'x-whisper-reveal-at': headerText(revealAt) }),
          ...(revealWhen === undefined ? {} : { 'x-whisper-reveal-when': text(revealWhen) }),
          ...(receipt === undefined ? {} : { 'x-whisper-receipt': receipt ? 'on' : 'off' }),
        },
        body: Buffer.from(text(ciphertextBase64), 'base64'),
      })
    },
    async checkOrder(call) {
      const { orderId, purchaseId } = call.arguments
      const key = purchaseId === undefined ? undefined : text(purchaseId)
      if (key !== undefined && !ids.isOwn(key)) throw new Refusal(UNKNOWN_PURCHASE)
      // The path of another word is no order's: the products are sold there.
      if (!isId('order', text(orderId))) throw new Refusal(NO_ORDER, { status: 404 })
      const answered = await call.ask({
        method: 'GET',
        path: `/api/payments/${text(orderId)}`,
        ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
      })
      if (answered.status !== 402) {
        return bought(call, answered, key === undefined ? {} : { purchaseId: key })
      }
      const { expiresAt } = expectJson(answered, 402)
      const value: PurchaseResult = {
        state: 'payment required',
        next: `Not paid yet. The invoice expires at ${text(expiresAt)}. Ask again in a second.`,
      }
      return resultOf(value)
    },
  }
}

/** Always the same bytes of a plan: the credential is bound to them. */
const planBody = ({ arguments: { planId } }: Call): Pick<Purchase, 'contentType' | 'body'> => ({
  contentType: 'application/json',
  body: utf8(JSON.stringify({ planId })),
})

/** The challenge as a result, and the quote for a client that pays by hand. */
function unpaid(
  { connection }: Call,
  purchaseId: string,
  body: Record<string, unknown>,
): ToolResult {
  const { challenge, request, error, detail } = body
  const challenges = [
    {
      ...(isObject(challenge) ? challenge : {}),
      request,
      // A payer that pays by itself repeats the arguments unchanged, and with them this.
      opaque: base64url(utf8(jcs({ purchaseId }))),
    },
  ]
  const quote = Object.fromEntries(
    QUOTE_MEMBERS.map((name): [string, unknown] => [name, body[name]]),
  ) as Quote
  const why = error === 'payment required' ? '' : `${text(error)}. ${text(detail)} `
  const value: PurchaseResult = {
    state: 'payment required',
    purchaseId,
    quote,
    next: `${why}Pay quote.bolt11 once. Then call check_order with this orderId and purchaseId, or repeat this call with the same arguments, this purchaseId and the credential in _meta["${CREDENTIAL_META}"].`,
  }
  const required = { httpStatus: 402, challenges, problem: problemIn(body) }
  if (connection.isPaymentError) throw new PaymentRequired({ ...required, ...value })
  return resultOf(value, { [CHALLENGE_META]: required })
}

const QUOTE_MEMBERS = [
  'orderId',
  'product',
  'planId',
  'amountSats',
  'bolt11',
  'paymentHash',
  'expiresAt',
  'network',
] as const satisfies (keyof Quote)[]

/** The problem of the 402 (RFC 9457). */
const problemIn = ({ type, title, status, detail, challengeId }: Record<string, unknown>) => ({
  ...{ type, title, status, detail, challengeId },
})

/** The credential as HTTP has it, and the purchase that its challenge named. @throws Refusal. */
function credentialIn(value: unknown): { credential: string; purchaseId: string | undefined } {
  if (!isObject(value) || !isObject(value.challenge) || !isObject(value.payload)) {
    throw new Refusal(MALFORMED)
  }
  const { opaque, request, ...challenge } = value.challenge
  try {
    const credential = base64url(
      utf8(
        jcs({
          challenge: {
            ...(challenge as { [name: string]: Json }),
            request: isObject(request) ? base64url(utf8(jcs(request as Json))) : text(request),
          },
          payload: value.payload as Json,
        }),
      ),
    )
    if (credential.length > MAX_CREDENTIAL_CHARS) throw new Refusal(MALFORMED)
    const named = objectIn(utf8Text(Buffer.from(text(opaque), 'base64url')) ?? '')?.purchaseId
    return { credential, purchaseId: typeof named === 'string' ? named : undefined }
  } catch {
    throw new Refusal(MALFORMED)
  }
}

/** The secret members of a capability. */
function tokensIn(resource: Record<string, unknown>): Record<string, string> {
  const names = Object.values(SOLD_PRODUCTS).flatMap(({ tokens, extraTokens }) =>
    Object.keys({ ...tokens, ...extraTokens }),
  )
  return Object.fromEntries(
    [...new Set(names)].flatMap((name) =>
      typeof resource[name] === 'string' ? [[name, resource[name]]] : [],
    ),
  )
}

/** A line of visible ASCII. The service refuses what it cannot read, but the parser would refuse a line break. */
const headerText = (value: unknown): string => text(value).replace(/[^\x20-\x7e]/g, '?')

const NO_ORDER = `order not found. ${ERRORS['order not found'].advice}`
const MALFORMED =
  'invalid payment credential. It must be {"challenge": {…}, "payload": {"preimage": "<64 hex digits>"}} with the challenge as it was sent. Nothing was spent: do not pay again, and repeat the call with the right credential.'
/** Products with a path `…/extend`. */
const EXTENDABLE: readonly string[] = ['catch', 'pulse']
const NO_EXTENSION =
  'cannot be extended. Only an inbox or a monitor can be extended. Nothing was paid.'
const NO_PURCHASE =
  'The credential names no purchase. Do not pay again: repeat the call with the purchaseId of the answer that had the invoice, as an argument.'
const UNKNOWN_PURCHASE =
  'unknown purchaseId. Only a purchaseId that this service made names a purchase. If you have paid, do not pay again: repeat the call with the purchaseId as it was sent. For a new purchase, leave it out.'
