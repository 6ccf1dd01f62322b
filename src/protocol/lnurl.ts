/**
 * LNURL-pay over a Lightning Address, as far as a payer's agent needs it: LUD-16 (address), LUD-06 (pay
 * request and invoice) and LUD-21 (verify). The provider is untrusted twice: a stranger chose it by
 * writing the address, and it chooses the URLs that we call next.
 */
import { isObject } from '../lib/json.ts'
import { MAX_INVOICE_CHARS } from './bolt11.ts'
import { provesPayment } from './preimage.ts'
import { type AllowedHosts, isPublicName, readPublicUrl } from './public-url.ts'

/** A provider's text is unusable. The message says why, and may be shown. */
export class LnurlError extends Error {
  override name = 'LnurlError'
}

export type LightningAddress = { address: string; domain: string; url: URL }

/** The answer of step 1 (LUD-06): the members that are used. */
export type PayParams = {
  callback: URL
  minSendableMsat: number
  maxSendableMsat: number
}

/** What a provider says about a payment (LUD-21). */
export type Verification =
  | { state: 'pending' }
  /** The preimage, if the provider shows it; it was checked. */
  | { state: 'settled'; preimage: string | null }

/** How much of a provider's own text is shown. */
const MAX_REASON_CHARS = 200

/**
 * Reads a Lightning Address (LUD-16).
 * @throws LnurlError
 */
export function parseLightningAddress(text: string, allowed: AllowedHosts): LightningAddress {
  const address = text.trim().toLowerCase()
  const [user = '', domain = '', ...more] = address.split('@')
  if (more.length > 0 || !USER.test(user)) throw new LnurlError('not a Lightning Address')
  const isAllowed = allowed.has(domain)
  if (!isAllowed && !isPublicName(domain)) {
    throw new LnurlError('the domain of a Lightning Address must be a public name')
  }
  const spelled = `${isAllowed ? 'http' : 'https'}://${domain}/.well-known/lnurlp/${user}`
  const url = checkedUrl(spelled, allowed)
  // Every other parser of the URL must see the host and the path that were checked above.
  if (!isAllowed && (url.hostname !== domain || url.href !== spelled)) {
    throw new LnurlError('not a Lightning Address')
  }
  if (url.pathname !== `/.well-known/lnurlp/${user}`)
    throw new LnurlError('not a Lightning Address')
  return { address, domain, url }
}

/**
 * A URL that we may call.
 * @throws LnurlError
 */
export function checkedUrl(text: string, allowed: AllowedHosts): URL {
  const read = readPublicUrl(text, allowed)
  if ('fault' in read) throw new LnurlError(read.fault)
  return read.url
}

/**
 * Reads step 1 (LUD-06): the amounts that may be paid, and the URL that makes invoices.
 * @throws LnurlError
 */
export function readPayParams(json: unknown, allowed: AllowedHosts): PayParams {
  const answer = acceptedAnswer(json)
  if (answer.tag !== 'payRequest') throw new LnurlError('the answer is no pay request')
  const { callback, minSendable, maxSendable, metadata, payerData } = answer
  if (!isMsat(minSendable) || !isMsat(maxSendable) || minSendable > maxSendable) {
    throw new LnurlError('the bounds of the amount are not positive whole millisatoshis')
  }
  if (typeof metadata !== 'string' || !isMetadata(metadata)) {
    throw new LnurlError('the metadata is not a list with one plain text')
  }
  if (asksForPayerData(payerData)) {
    throw new LnurlError('the provider demands data about the payer, which is never sent')
  }
  if (typeof callback !== 'string') throw new LnurlError('the callback is not a URL')
  return {
    callback: checkedUrl(callback, allowed),
    minSendableMsat: minSendable,
    maxSendableMsat: maxSendable,
  }
}

/** @throws LnurlError if the provider does not take payments of exactly this amount. */
export function requireSendable(params: PayParams, amountMsat: number): void {
  if (amountMsat < params.minSendableMsat || amountMsat > params.maxSendableMsat) {
    const bounds = `${Math.ceil(params.minSendableMsat / 1000)} to ${Math.floor(params.maxSendableMsat / 1000)}`
    throw new LnurlError(
      `the provider takes ${bounds} sat, and ${amountMsat / 1000} sat is outside of that`,
    )
  }
}

/** The URL of step 2: the callback with its own query and the amount. */
export function callbackUrl({ callback }: PayParams, amountMsat: number): URL {
  const url = new URL(callback)
  url.searchParams.set('amount', String(amountMsat))
  return url
}

/**
 * Reads step 2 (LUD-06). `successAction` is ignored, and so is a `verify` that we may not call or that
 * leads to a third party.
 * @throws LnurlError
 */
export function readInvoice(
  json: unknown,
  hosts: { allowed: AllowedHosts; callback: URL; domain: string },
): { bolt11: string; verify: URL | null } {
  const { pr, verify } = acceptedAnswer(json)
  if (typeof pr !== 'string' || pr === '' || pr.length > MAX_INVOICE_CHARS) {
    throw new LnurlError('the answer holds no invoice')
  }
  return { bolt11: pr, verify: verifyUrl(verify, hosts) }
}

/**
 * Reads a `verify` answer (LUD-21) for an invoice. An error of the provider means "not settled yet".
 * @throws LnurlError if the answer contradicts itself or the invoice.
 */
export function readVerification(
  json: unknown,
  invoice: { bolt11: string; paymentHash: string },
): Verification {
  if (!isObject(json)) throw new LnurlError('the verification is not a JSON object')
  if (json.status !== 'OK') return { state: 'pending' }
  const { settled, preimage = null, pr } = json
  if (pr !== undefined && pr !== null) {
    const isSame = typeof pr === 'string' && pr.toLowerCase() === invoice.bolt11.toLowerCase()
    if (!isSame) throw new LnurlError('the verification is about another invoice')
  }
  if (settled !== true) return { state: 'pending' }
  if (preimage === null) return { state: 'settled', preimage: null }
  if (typeof preimage !== 'string' || !provesPayment(preimage, invoice.paymentHash)) {
    throw new LnurlError('the verification shows a preimage that does not belong to the invoice')
  }
  return { state: 'settled', preimage: preimage.toLowerCase() }
}

// LUD-16 does not allow a plus; some providers use it for tags, and it is harmless in a path.
const USER = /^[a-z0-9._+-]{1,64}$/

/** An object that is not `{"status": "ERROR"}`, which may come with HTTP 200 too. */
function acceptedAnswer(json: unknown): Record<string, unknown> {
  if (!isObject(json)) throw new LnurlError('the answer is not a JSON object')
  if (json.status === 'ERROR') throw new LnurlError(`the provider refused: ${shown(json.reason)}`)
  return json
}

function isMsat(value: unknown): value is number {
  return Number.isSafeInteger(value) && typeof value === 'number' && value >= 1
}

function isMetadata(text: string): boolean {
  let entries: unknown
  try {
    entries = JSON.parse(text)
  } catch {
    return false
  }
  if (!Array.isArray(entries) || !entries.every(Array.isArray)) return false
  const plain = entries.filter((entry: unknown[]) => entry[0] === 'text/plain')
  return plain.length === 1 && typeof plain[0]?.[1] === 'string'
}

/** LUD-18: optional payer data may be left out, mandatory data may not. */
function asksForPayerData(payerData: unknown): boolean {
  if (!isObject(payerData)) return false
  return Object.values(payerData).some((field) => isObject(field) && field.mandatory === true)
}

function verifyUrl(
  verify: unknown,
  { allowed, callback, domain }: { allowed: AllowedHosts; callback: URL; domain: string },
): URL | null {
  if (typeof verify !== 'string') return null
  try {
    const url = checkedUrl(verify, allowed)
    return url.host === callback.host || url.host === domain ? url : null
  } catch (error) {
    if (error instanceof LnurlError) return null
    throw error
  }
}

/** A provider's text, made safe for a terminal and a log line. */
function shown(reason: unknown): string {
  if (typeof reason !== 'string') return 'no reason given'
  const plain = reason.replaceAll(/[^\p{L}\p{N}\p{P}\p{S} ]+/gu, ' ').trim()
  return plain === '' ? 'no reason given' : plain.slice(0, MAX_REASON_CHARS)
}
