/** LND over its REST port (lnd 0.19 and later). */
import type { Clock } from '../../lib/clock.ts'
import { type Lightning, type Network, type NodeInfo, UnknownInvoice } from '../lightning.ts'
import { checkAsk, checkInvoice } from '../node/check-invoice.ts'
import { NodeError } from '../node/error.ts'
import type { Fields } from '../node/json-fields.ts'
import type { LightningNode } from '../node/node.ts'
import { NODE_TIMEOUTS, type NodeTimeouts } from '../node/timeouts.ts'
import type { Cursor } from '../node/watch.ts'
import { findProblem } from './access.ts'
import { madeInvoice, nodeInfo, seenInvoice } from './answers.ts'
import { lndError } from './error.ts'
import { createLndHttp } from './http.ts'
import { watchSettlements } from './watch.ts'

export type LndOptions = {
  /** `https://host:8080` */
  baseUrl: string
  /** Hex; it needs invoices:read, invoices:write and info:read. */
  macaroon: string
  /** PEM of the node's own certificate; without it the system's roots decide. */
  certificate: string | undefined
  /** Puts hints to the node's private channels into invoices; without any public one, a must. */
  private?: boolean
  clock: Clock
  timeouts?: Partial<NodeTimeouts>
  /** Where the invoice stream got to, kept between runs. */
  cursor: Cursor
  onWarning?: (message: string) => void
}

const NOT_FOUND = 5 // gRPC
const NO_SUCH_ROUTE = 'Not Found' // the gateway's own words, which say nothing about an invoice

export function createLnd(options: LndOptions): LightningNode {
  const { baseUrl, clock, cursor, onWarning = () => {} } = options
  const timeouts = { ...NODE_TIMEOUTS, ...options.timeouts }
  const http = createLndHttp({ ...options, connectTimeoutMs: timeouts.connectMs })
  const closing = new AbortController()
  let network: Network | undefined

  async function info(): Promise<NodeInfo> {
    const found = nodeInfo(
      await http.call({
        what: 'asking for the node',
        method: 'GET',
        path: '/v1/getinfo',
        timeoutMs: timeouts.infoMs,
      }),
    )
    network = found.network
    return found
  }

  const createInvoice: Lightning['createInvoice'] = async (ask) => {
    checkAsk(ask)
    const expected = network ?? (await info()).network
    const made = madeInvoice(
      await http.call({
        what: 'making an invoice',
        method: 'POST',
        path: '/v1/invoices',
        body: {
          value_msat: String(ask.amountMsat),
          memo: ask.memo,
          expiry: String(ask.expirySeconds),
          private: options.private ?? false,
        },
        timeoutMs: timeouts.createMs,
      }),
    )
    checkInvoice(made.bolt11, made.paymentHash, ask, expected, clock.now())
    return made
  }

  const lookupInvoice: Lightning['lookupInvoice'] = async (paymentHash) => {
    if (!/^[0-9a-f]{64}$/.test(paymentHash)) throw new TypeError('not a payment hash')
    const seen = seenInvoice(await look(paymentHash))
    if (seen.paymentHash !== paymentHash) {
      throw lndError('malformed', 'the node answered for another invoice')
    }
    // Canceled, in LND's words: it takes no HTLC for it any more, and holds none.
    return seen.state === 'dead' ? { state: 'dead', isFinal: true } : { state: seen.state }
  }

  async function look(paymentHash: string): Promise<Fields> {
    try {
      return await http.call({
        what: 'looking up an invoice',
        method: 'GET',
        path: `/v1/invoice/${paymentHash}`,
        timeoutMs: timeouts.lookupMs,
      })
    } catch (error) {
      const answer = error instanceof NodeError ? error.answer : undefined
      const isUnknown = answer?.code === NOT_FOUND && answer.message !== NO_SUCH_ROUTE
      throw isUnknown ? new UnknownInvoice() : error
    }
  }

  const watch: Lightning['watch'] = (onSettled, signal) =>
    watchSettlements(
      {
        http,
        cursor,
        probe: info,
        probeEveryMs: timeouts.probeEveryMs,
        retry: { firstMs: timeouts.retryFirstMs, mostMs: timeouts.retryMostMs },
        onWarning,
      },
      onSettled,
      AbortSignal.any([signal, closing.signal]),
    )

  return {
    info,
    createInvoice,
    lookupInvoice,
    watch,
    checkAccess: () => findProblem({ http, info, baseUrl, timeoutMs: timeouts.infoMs }),
    close() {
      closing.abort()
      return http.close()
    },
  }
}
