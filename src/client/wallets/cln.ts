/** A wallet on Core Lightning, over clnrest. */
import type { Wallet } from '../wallet.ts'
import { fields, NodeRefused, type NodeResponse, requestNode, textOf } from './node-fetch.ts'
import { nodeAt, type PayingOptions, type Payment, payingWallet, sendSeconds } from './paying.ts'

/** The node's address, and the rune that may pay. `maxFeeSats` limits the routing fee, in satoshis. */
export type ClnWalletOptions = PayingOptions & {
  /** `https://host:3010` */
  url: string
  /**
   * Needs the methods `pay` and `listpays`, and nothing else. It can limit the amount and the fee of a payment, but
   * not how often it is used: `rate` and `per` count the look-up before a payment too, and refuse the payment.
   */
  rune: string
  fetch?: typeof globalThis.fetch
}

/**
 * Pays from a Core Lightning node. Make its rune with `lightning-cli createrune restrictions=…`, which for at most
 * 1000 sat and a fee of 50 is
 * `'[["method=pay","method=listpays"],["method/pay","pinvbolt11_amount<1000001"],["method/pay","pnamemaxfee<50001"]]'`.
 *
 * ```ts
 * const wallet = clnWallet({ url: 'https://127.0.0.1:3010', rune })
 * ```
 */
export function clnWallet(options: ClnWalletOptions): Wallet {
  const { url, rune, fetch = globalThis.fetch } = options
  const base = url.replace(/\/+$/, '')

  const call = (method: string, json: unknown, signal: AbortSignal): Promise<NodeResponse> =>
    requestNode(fetch, `${base}/v1/${method}`, { method: 'POST', headers: { rune }, json, signal })

  return payingWallet(
    {
      name: 'Core Lightning',
      id: nodeAt('Core Lightning', url),
      refusesRepeats: true,
      triesAgain: true,
      async lookup({ paymentHash }, signal) {
        const answer = await call('listpays', { payment_hash: paymentHash }, signal)
        const { pays } = fields(answer.body)
        if (!isDone(answer) || !Array.isArray(pays)) {
          throw new NodeRefused(refusal('listpays', answer))
        }
        return best(pays.map((each) => payment(fields(each))))
      },
      async send({ bolt11 }, maxFeeMsat, signal) {
        const params = { bolt11, maxfee: maxFeeMsat, retry_for: sendSeconds(options) }
        const answer = await call('pay', params, signal)
        if (isDone(answer)) return payment(fields(answer.body))
        // A body without the node's `message` comes from a proxy.
        if (fields(answer.body).message === undefined) throw new NodeRefused(refusal('pay', answer))
        return { state: 'failed', reason: refusal('pay', answer) }
      },
    },
    options,
  )
}

const isDone = ({ status }: NodeResponse): boolean => status === 200 || status === 201

/** One hash can have several payments. A complete or pending one counts before a failed one. */
function best(payments: Payment[]): Payment {
  const find = (state: Payment['state']) => payments.find((each) => each.state === state)
  return find('paid') ?? find('pending') ?? find('failed') ?? { state: 'none' }
}

function payment(of: Record<string, unknown>): Payment {
  // `pay` and `listpays` use different names.
  const preimage = of.payment_preimage ?? of.preimage
  switch (of.status) {
    case 'complete':
      return {
        state: 'paid',
        preimage: typeof preimage === 'string' ? preimage : '',
        feeMsat: Number(of.amount_sent_msat) - Number(of.amount_msat),
        bolt11: of.bolt11,
      }
    case 'failed':
      return { state: 'failed', reason: 'the payment failed' }
    default:
      return { state: 'pending' }
  }
}

/** A rune that is refused for a call is known, and lacks the call or exceeds a limit, which the node names. */
const NOT_PERMITTED = 1502

function refusal(method: 'pay' | 'listpays', { status, body }: NodeResponse): string {
  const { code, message } = fields(body)
  const words = textOf(message)
  if (status === 401 || status === 403) {
    const said = words === null ? '' : ` ("${words}")`
    return code === NOT_PERMITTED
      ? `Core Lightning: the rune does not allow this ${method}${said}`
      : `Core Lightning does not accept the rune${said}; paying needs one for pay and listpays`
  }
  return `Core Lightning: ${words ?? 'no answer of its own'} (HTTP ${status})`
}
