/** LNURL-pay: from a Lightning Address to an invoice (LUD-16, LUD-06), and its payment (LUD-21). */
import { LRUCache } from 'lru-cache'
import { createOutbound, type OutboundOptions } from '../alerts/outbound.ts'
import type { OutboundError } from '../alerts/outbound-rules.ts'
import type { SteadyClock } from '../lib/clock.ts'
import { parseJsonBytes } from '../lib/json.ts'
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

/** LNURL metadata (LUD-06) may contain a picture. Up to 136 536 characters are common. */
const MAX_ANSWER_BYTES = 256 * 1024
/** LNURL servers are small. More concurrent calls would look like an attack. */
const AT_A_HOST = { concurrent: 4, waiting: 32 }
/** With a look-up and a call, less than the 15 seconds that the middleware waits for the service. */
const WAIT_MS = 2_000
/** How long the answer of step 1 is cached. */
const REMEMBER_MS = 60_000
const MAX_REMEMBERED = 1_000

export type LnurlOptions = Omit<OutboundOptions, 'host' | 'maxAnswerBytes'> & { clock: SteadyClock }

export function createLnurlClient(options: LnurlOptions) {
  const { allowed, clock } = options
  const out = createOutbound({
    ...options,
    host: AT_A_HOST,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    timeouts: { waitMs: WAIT_MS, ...options.timeouts },
  })
  const remembered = new LRUCache<string, { params: PayParams; until: number }>({
    max: MAX_REMEMBERED,
  })

  /**
   * Asks a URL that `checkedUrl` accepted. Many addresses are at one provider, so they take turns.
   * @returns `json` is undefined for an answer that is not JSON.
   */
  async function get(url: URL, address: string): Promise<{ status: number; json: unknown }> {
    try {
      const { status, body } = await out.send({
        url,
        method: 'GET',
        from: address,
        headers: { accept: 'application/json', 'user-agent': 'lnurl-pay' },
      })
      return { status, json: parseJsonBytes(body) }
    } catch (error) {
      // `send` throws nothing else.
      throw asLnurlError(error as OutboundError)
    }
  }

  async function payParams(address: string): Promise<PayParams> {
    const { url } = parseLightningAddress(address, allowed)
    const answer = await get(url, address)
    const params = readPayParams(requireJson(answer), allowed)
    remembered.set(address, { params, until: clock.monotonic() + REMEMBER_MS })
    return params
  }

  async function rememberedParams(address: string): Promise<PayParams> {
    const known = remembered.get(address)
    return known && clock.monotonic() < known.until ? known.params : payParams(address)
  }

  return {
    /** Step 1, without the cache. @throws LnurlError */
    payParams,

    /** Step 2: an unchecked invoice, and the URL that verifies its payment. @throws LnurlError */
    async requestInvoice(
      address: string,
      amountMsat: number,
    ): Promise<{ bolt11: string; verify: URL | null }> {
      const { domain } = parseLightningAddress(address, allowed)
      const params = await rememberedParams(address)
      requireSendable(params, amountMsat)
      const answer = await get(callbackUrl(params, amountMsat), address)
      return readInvoice(requireJson(answer), { allowed, callback: params.callback, domain })
    },

    /** LUD-21. @throws LnurlError if the provider does not answer or contradicts itself. */
    async verify(
      url: string,
      { address, ...invoice }: { address: string; bolt11: string; paymentHash: string },
    ): Promise<Verification> {
      const { json } = await get(checkedUrl(url, allowed), address)
      // Any status is read: a provider answers 404 for an invoice that it does not know.
      return readVerification(json, invoice)
    },

    close: out.close,
  }
}

export type LnurlClient = ReturnType<typeof createLnurlClient>

/** Reads an LNURL error from an answer of any status. Any other answer needs HTTP 200. */
function requireJson({ status, json }: { status: number; json: unknown }): unknown {
  const isRefusal =
    typeof json === 'object' && json !== null && 'status' in json && json.status === 'ERROR'
  if (status !== 200 && !isRefusal) throw new LnurlError(`the provider answers with HTTP ${status}`)
  if (json === undefined) throw new LnurlError('the answer of the provider is not JSON')
  return json
}

const SENTENCES: Record<OutboundError['reason'], string> = {
  'not public': 'the name of the provider leads to an address that is not public',
  ourselves: 'the provider is this service',
  blocked: 'the operator blocks the provider',
  nowhere: 'the name of the provider leads nowhere',
  unreachable: 'the provider cannot be reached',
  'too slow': 'the provider takes too long',
  'too large': 'the answer of the provider is too large',
  'too busy': 'the provider is too busy',
}

/** One sentence for the log and the operator. It quotes nothing that the server sent. */
function asLnurlError(error: OutboundError): LnurlError {
  const code = error.code === '' ? '' : ` (${error.code})`
  return new LnurlError(`${SENTENCES[error.reason]}${code}`, { cause: error })
}
