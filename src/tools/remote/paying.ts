/**
 * Who pays at `/mcp`: the caller. An unpaid purchase is a result with its challenge, in the form that MCP clients of
 * the Payment scheme read; the credential of their retry becomes the Authorization header of the same purchase.
 */
import { base64url, utf8, utf8Text } from '../../lib/bytes.ts'
import { isId } from '../../lib/ids.ts'
import { type Json, jcs } from '../../lib/jcs.ts'
import { isObject, objectIn } from '../../lib/json.ts'
import { isProduct, type PlanId, SOLD_PRODUCTS } from '../../lib/product-names.ts'
import { decodeReceipt } from '../../protocol/payment-auth.ts'
import {
  extensionRequest,
  type PurchaseRequest,
  planRequest,
  type WhisperRequestTerms,
  whisperRequest,
} from '../../protocol/purchase-requests.ts'
import { type Answered, expectJson, Refusal } from '../answers.ts'
import { type Pay, pick, quoteIn, type Sale, text, type Wanted } from '../tool.ts'
import type { Call } from './own-requests.ts'
import type { PurchaseIds } from './purchase-id.ts'
import { idIn, neededToken, tokenIn } from './secrets.ts'

const CREDENTIAL_META = 'org.paymentauth/credential'
const REQUIRED_META = 'org.paymentauth/payment-required'
const RECEIPT_META = 'org.paymentauth/receipt'

/** Far below the limit of a request's headers. Credentials of Lightning have about 2 KiB. */
const MAX_CREDENTIAL_CHARS = 12 * 1024

export const createPaying =
  ({ ids, publicUrl }: { ids: PurchaseIds; publicUrl: () => string }) =>
  (call: Call): Pay => {
    async function buy({ path, headers, body }: PurchaseRequest): Promise<Sale> {
      const { purchaseId, credential } = nameOf()
      const answered = await call.ask({
        method: 'POST',
        path,
        body,
        headers: {
          'idempotency-key': purchaseId,
          'x-payment-protocol': 'payment',
          ...(credential === null ? {} : { authorization: `Payment ${credential}` }),
          ...headers,
        },
      })
      if (answered.status === 402) return unpaid(purchaseId, expectJson(answered, 402))
      return bought(answered, purchaseId)
    }

    /** The purchase that a call begins or repeats. A payer that repeats only the credential names it by that. */
    function nameOf(): { purchaseId: string; credential: string | null } {
      const { args, meta } = call
      const paid = meta[CREDENTIAL_META] === undefined ? null : credentialIn(meta[CREDENTIAL_META])
      const named = args.purchaseId ?? paid?.purchaseId
      // A new purchase would have a new invoice, which a client that pays by itself would pay as well.
      if (paid && named === undefined) throw new Refusal(NO_PURCHASE)
      const purchaseId = named === undefined ? ids.make() : text(named)
      if (!ids.isOwn(purchaseId)) throw new Refusal(UNKNOWN_PURCHASE)
      return { purchaseId, credential: paid?.credential ?? null }
    }

    function bought(answered: Answered, purchaseId: string | undefined): Sale {
      const { resource, extended, expiresAt } = expectJson(answered)
      const receipt = decodeReceipt(answered.header('payment-receipt') ?? '')
      const named = purchaseId === undefined ? {} : { purchaseId }
      const sold = { named, ...(receipt ? { meta: { [RECEIPT_META]: receipt } } : {}) }
      // An extension leaves the tokens as they were, and hands out none.
      if (extended === true) return { ...sold, state: 'extended', expiresAt: text(expiresAt) }
      if (!isObject(resource) || !isProduct(resource.product)) {
        throw new Error('a settled purchase has no resource')
      }
      const { tokens, extraTokens } = SOLD_PRODUCTS[resource.product]
      return {
        ...sold,
        state: 'bought',
        product: resource.product,
        origin: publicUrl(),
        publicId: text(resource.publicId),
        expiresAt: text(resource.expiresAt),
        secrets: pick(resource, Object.keys({ ...tokens, ...extraTokens })) as never,
      }
    }

    return {
      // Always the same bytes: the credential is bound to them.
      buy: ({ product, planId, settings }: Wanted) =>
        buy(
          product === 'whisper' ? whisperOf(call, planId) : planRequest(product, planId, settings),
        ),
      async extend() {
        const { product, publicId } = idIn(call, ['catch', 'pulse'])
        const { args, meta } = call
        const isNew = args.purchaseId === undefined && meta[CREDENTIAL_META] === undefined
        // Only the first call opens an order. Those that repeat it are known by what names the purchase.
        const token = isNew ? neededToken(call, `${product}_owner_`) : tokenIn(call)
        const planId = args.planId as PlanId
        return buy(extensionRequest({ product, publicId, planId }, token))
      },
      async check() {
        const { orderId, purchaseId } = call.args
        const key = purchaseId === undefined ? undefined : text(purchaseId)
        if (key !== undefined && !ids.isOwn(key)) throw new Refusal(UNKNOWN_PURCHASE)
        // The path of another word is no order's: the products are sold there.
        if (!isId('order', text(orderId))) throw new Refusal(NO_ORDER)
        const answered = await call.ask({
          // Answers for an extension as well as for a purchase.
          method: 'GET',
          path: `/api/extensions/${text(orderId)}`,
          ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
        })
        if (answered.status !== 402) return bought(answered, key)
        const { expiresAt } = expectJson(answered, 402)
        return {
          named: {},
          state: 'unpaid',
          note: `Not paid yet. The invoice expires at ${text(expiresAt)}. Ask again in a second.`,
        }
      },
    }
  }

function whisperOf({ args }: Call, planId: PlanId): PurchaseRequest {
  const { revealAt, ciphertextBase64 } = args
  const terms: WhisperRequestTerms = { ...args, planId }
  if (revealAt !== undefined) terms.revealAt = headerText(revealAt)
  return whisperRequest(terms, Buffer.from(text(ciphertextBase64), 'base64'))
}

/** The challenge as a result, and the quote for a client that pays by hand. */
function unpaid(purchaseId: string, body: Record<string, unknown>): Sale {
  const { challenge, request, error, detail } = body
  const challenges = [
    {
      ...(isObject(challenge) ? challenge : {}),
      request,
      // A payer that pays by itself repeats the arguments unchanged, and with them this.
      opaque: base64url(utf8(jcs({ purchaseId }))),
    },
  ]
  const why = error === 'payment required' ? '' : `${text(error)}. ${text(detail)} `
  return {
    state: 'unpaid',
    named: { purchaseId },
    quote: quoteIn(body),
    note: `${why}Pay the invoice once, then call check_order with this orderId and purchaseId. A host that pays by itself repeats this call with the same arguments and the credential in _meta["${CREDENTIAL_META}"]. The two ids together hand over what was bought: keep them like a token.`,
    meta: {
      [REQUIRED_META]: {
        httpStatus: 402,
        challenges,
        // The problem of the 402 (RFC 9457).
        problem: pick(body, ['type', 'title', 'status', 'detail', 'challengeId']),
      },
    },
  }
}

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

/** A line of visible ASCII. The service refuses what it cannot read, but the parser would refuse a line break. */
const headerText = (value: unknown): string => text(value).replace(/[^\x20-\x7e]/g, '?')

const NO_ORDER =
  'order not found. orderId is order_… of a quote. If you have paid, do not pay again: the operator can restore the order from its payment hash.'
const MALFORMED =
  'invalid payment credential. It must be {"challenge": {…}, "payload": {"preimage": "<64 hex digits>"}} with the challenge as it was sent. Nothing was spent: do not pay again, and repeat the call with the right credential.'
const NO_PURCHASE =
  'The credential names no purchase. Do not pay again: repeat the call with the purchaseId of the answer that had the invoice, as an argument.'
const UNKNOWN_PURCHASE =
  'unknown purchaseId. Only a purchaseId that this service made names a purchase. If you have paid, do not pay again: repeat the call with the purchaseId as it was sent. For a new purchase, leave it out.'
