/** LNURL-pay: from a Lightning Address to an invoice (LUD-16, LUD-06), and its payment (LUD-21). */
import { LRUCache } from 'lru-cache'
import {
  callbackUrl,
  checkedUrl,
  LnurlError,
  type PayParams,
  parseLightningAddress,
  readInvoice,
  readPayParams,
  readVerification,
  requireSendable,
  type Verification,
} from '../protocol/lnurl.ts'
import { createLnurlHttp, type LnurlHttpOptions } from './lnurl-http.ts'

/** How long the answer of step 1 is cached. */
const REMEMBER_MS = 60_000
const MAX_REMEMBERED = 1_000

export type LnurlClient = {
  /** Step 1, without the cache. @throws LnurlError */
  payParams(address: string): Promise<PayParams>
  /** Step 2: an unchecked invoice, and the URL that verifies its payment. @throws LnurlError */
  requestInvoice(
    address: string,
    amountMsat: number,
  ): Promise<{ bolt11: string; verify: URL | null; metadata: string }>
  /** LUD-21. @throws LnurlError if the provider does not answer or contradicts itself. */
  verify(url: string, invoice: { bolt11: string; paymentHash: string }): Promise<Verification>
  close(): Promise<void>
}

export function createLnurlClient(options: LnurlHttpOptions): LnurlClient {
  const { allowed, clock } = options
  const http = createLnurlHttp(options)
  const remembered = new LRUCache<string, { params: PayParams; until: number }>({
    max: MAX_REMEMBERED,
  })

  async function payParams(address: string): Promise<PayParams> {
    const { url } = parseLightningAddress(address, allowed)
    const answer = await http.get(url)
    const params = readPayParams(requireJson(answer), allowed)
    remembered.set(address, { params, until: clock.monotonic() + REMEMBER_MS })
    return params
  }

  async function rememberedParams(address: string): Promise<PayParams> {
    const known = remembered.get(address)
    return known && clock.monotonic() < known.until ? known.params : payParams(address)
  }

  return {
    payParams,

    async requestInvoice(address, amountMsat) {
      const { domain } = parseLightningAddress(address, allowed)
      const params = await rememberedParams(address)
      requireSendable(params, amountMsat)
      const answer = await http.get(callbackUrl(params, amountMsat))
      const { callback, metadata } = params
      return { ...readInvoice(requireJson(answer), { allowed, callback, domain }), metadata }
    },

    async verify(url, invoice) {
      const { json } = await http.get(checkedUrl(url, allowed))
      // Any status is read: a provider answers 404 for an invoice that it does not know.
      return readVerification(json, invoice)
    },

    close: () => http.close(),
  }
}

/** Reads an LNURL error from an answer of any status. Any other answer needs HTTP 200. */
function requireJson({ status, json }: { status: number; json: unknown }): unknown {
  const isRefusal =
    typeof json === 'object' && json !== null && 'status' in json && json.status === 'ERROR'
  if (status !== 200 && !isRefusal) throw new LnurlError(`the provider answers with HTTP ${status}`)
  if (json === undefined) throw new LnurlError('the answer of the provider is not JSON')
  return json
}
