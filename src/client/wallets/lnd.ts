/** A wallet on LND, over its REST port. */
import { base64, hexBytes } from '../../lib/bytes.ts'
import { parseJson } from '../../lib/json.ts'
import type { Wallet } from '../wallet.ts'
import { fields, linesOf, NodeRefused, openNode, requestNode, textOf } from './node-fetch.ts'
import { nodeAt, type PayingOptions, type Payment, payingWallet, sendSeconds } from './paying.ts'

/** The node's address, and the macaroon that may pay. `maxFeeSats` limits the routing fee, in satoshis. */
export type LndWalletOptions = PayingOptions & {
  /** `https://host:8080` */
  url: string
  /**
   * Needs `uri:/routerrpc.Router/SendPaymentV2` and `uri:/routerrpc.Router/TrackPaymentV2`, and nothing else.
   * It has no limit of its own: whoever has it can spend what is in the node's channels.
   */
  macaroonHex: string
  fetch?: typeof globalThis.fetch
}

/**
 * Pays from an LND node. Bake its macaroon with
 * `lncli bakemacaroon uri:/routerrpc.Router/SendPaymentV2 uri:/routerrpc.Router/TrackPaymentV2`.
 *
 * ```ts
 * const wallet = lndWallet({ url: 'https://127.0.0.1:8080', macaroonHex })
 * ```
 */
export function lndWallet(options: LndWalletOptions): Wallet {
  const { url, macaroonHex, fetch = globalThis.fetch } = options
  const base = url.replace(/\/+$/, '')
  const headers = { 'grpc-metadata-macaroon': macaroonHex }

  return payingWallet(
    {
      name: 'LND',
      id: nodeAt('LND', url),
      refusesRepeats: true,
      async lookup({ paymentHash }, signal) {
        // The gateway expects bytes in padded base64url.
        const hash = base64(hexBytes(paymentHash) ?? new Uint8Array())
          .replaceAll('+', '-')
          .replaceAll('/', '_')
        const response = await openNode(fetch, `${base}/v2/router/track/${hash}`, {
          method: 'GET',
          headers,
          signal,
        })
        // The first line is the current state. The stream would continue until the payment ends.
        for await (const line of linesOf(response)) return tracked(parseJson(line))
        throw new NodeRefused(`LND answered HTTP ${response.status} and nothing else`)
      },
      async send({ bolt11 }, maxFeeMsat, signal) {
        const { status, text } = await requestNode(fetch, `${base}/v2/router/send`, {
          method: 'POST',
          headers,
          json: {
            payment_request: bolt11,
            timeout_seconds: sendSeconds(options),
            fee_limit_msat: String(maxFeeMsat),
            no_inflight_updates: true,
          },
          signal,
        })
        const answer = fields(parseJson(text.trim().split('\n').at(-1) ?? ''))
        if (answer.result !== undefined) return payment(fields(answer.result))
        const reason = messageOf(answer)
        if (reason === null) throw new NodeRefused(`LND answered HTTP ${status}`)
        return { state: 'failed', reason: reason === DENIED ? lacks('SendPaymentV2') : reason }
      },
    },
    options,
  )
}

function tracked(line: unknown): Payment {
  const answer = fields(line)
  if (answer.result !== undefined) return payment(fields(answer.result))
  const message = messageOf(answer)
  // gRPC's NOT_FOUND.
  const code = fields(answer.error).code ?? answer.code
  if (code === 5 && message !== 'Not Found') return { state: 'none' }
  if (message === DENIED) throw new NodeRefused(lacks('TrackPaymentV2'))
  throw new NodeRefused(message === null ? 'LND did not answer as LND does' : `LND: ${message}`)
}

function payment({
  status,
  payment_preimage,
  fee_msat,
  failure_reason,
  payment_request,
}: Record<string, unknown>): Payment {
  switch (status) {
    case 'SUCCEEDED':
      return {
        state: 'paid',
        preimage: typeof payment_preimage === 'string' ? payment_preimage : '',
        feeMsat: fee_msat,
        bolt11: payment_request,
      }
    case 'FAILED':
      return { state: 'failed', reason: textOf(failure_reason) ?? 'no reason given' }
    default:
      return { state: 'pending' }
  }
}

/** LND's words for a call that the macaroon does not allow. Their gRPC code is only "unknown". */
const DENIED = 'permission denied'

const lacks = (method: string): string => `LND: the macaroon lacks uri:/routerrpc.Router/${method}`

function messageOf(answer: Record<string, unknown>): string | null {
  return textOf(fields(answer.error).message ?? answer.message)
}
