/** Core Lightning over clnrest, the REST plugin that comes with it. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { type InvoiceStatus, type Lightning, type Network, UnknownInvoice } from '../lightning.ts'
import { type AccessProblem, accessProblem } from '../node/access.ts'
import { checkAsk, checkInvoice } from '../node/check-invoice.ts'
import { NodeError, quotable, supportedNetwork } from '../node/error.ts'
import { createNodeHttp } from '../node/http.ts'
import { nodeIdOf } from '../node/id.ts'
import { type Fields, jsonOf } from '../node/json-fields.ts'
import type { LightningNode } from '../node/node.ts'
import { NODE_TIMEOUTS, type NodeTimeouts } from '../node/timeouts.ts'
import type { Cursor } from '../node/watch.ts'
import type { ClnAccess } from './url.ts'
import { type ClnCall, watchCln } from './watch.ts'

export type ClnOptions = ClnAccess & {
  clock: Clock
  /** Where `waitanyinvoice` got to, kept between runs. */
  cursor: Cursor
  timeouts?: Partial<NodeTimeouts>
  onWarning?: (message: string) => void
}

const NODE = 'Core Lightning'
const read = jsonOf(NODE)

const CREATE_RUNE =
  'make one with: lightning-cli createrune restrictions=' +
  `'[["method=invoice","method=listinvoices","method=waitanyinvoice","method=getinfo"]]'`

/** Needs a rune for `invoice`, `listinvoices`, `waitanyinvoice` and `getinfo`. */
export function createCln(options: ClnOptions): LightningNode {
  const { baseUrl, rune, certificate, clock, cursor, onWarning = () => {} } = options
  const timeouts = { ...NODE_TIMEOUTS, ...options.timeouts }
  const http = createNodeHttp({
    node: NODE,
    baseUrl,
    headers: { rune },
    certificate,
    connectTimeoutMs: timeouts.connectMs,
  })
  const closing = new AbortController()
  let network: Network | undefined

  const call: ClnCall = async ({ method, params, ...ask }) => {
    const path = `/v1/${method}`
    const { status, text } = await http.exchange({ ...ask, method: 'POST', path, json: params })
    if (status === 201 || status === 200) return read.parse(text)
    throw refusal(ask.what, status, text)
  }

  async function info() {
    const answer = await call({
      what: 'asking for the node',
      method: 'getinfo',
      params: {},
      timeoutMs: timeouts.infoMs,
    })
    const chain = read.string(answer, 'network')
    network = supportedNetwork(NODE, chain === 'bitcoin' ? 'mainnet' : chain)
    const isBehind = answer.warning_bitcoind_sync ?? answer.warning_lightningd_sync
    return { network, synced: isBehind === undefined, nodeId: nodeIdOf(answer.id) }
  }

  const createInvoice: Lightning['createInvoice'] = async (ask) => {
    checkAsk(ask)
    const expected = network ?? (await info()).network
    const answer = await call({
      what: 'making an invoice',
      method: 'invoice',
      params: {
        amount_msat: ask.amountMsat,
        // Has to be new; nobody but the node's operator sees it.
        label: `mayfly-${randomUUID()}`,
        description: ask.memo,
        expiry: ask.expirySeconds,
        ...(options.private ? { exposeprivatechannels: true } : {}),
      },
      timeoutMs: timeouts.createMs,
    })
    const bolt11 = read.string(answer, 'bolt11')
    const paymentHash = read.hash(answer, 'payment_hash')
    checkInvoice(bolt11, paymentHash, ask, expected, clock.now())
    return { bolt11, paymentHash }
  }

  const lookupInvoice: Lightning['lookupInvoice'] = async (paymentHash) => {
    if (!/^[0-9a-f]{64}$/.test(paymentHash)) throw new TypeError('not a payment hash')
    const { invoices } = await call({
      what: 'looking up an invoice',
      method: 'listinvoices',
      params: { payment_hash: paymentHash },
      timeoutMs: timeouts.lookupMs,
    })
    if (!Array.isArray(invoices)) throw read.malformed('invoices is missing')
    if (invoices.length === 0) throw new UnknownInvoice()
    const invoice = read.object(invoices[0])
    if (invoices.length > 1 || read.hash(invoice, 'payment_hash') !== paymentHash) {
      throw read.malformed('the node answered for another invoice')
    }
    return statusOf(read.string(invoice, 'status'))
  }

  const watch: Lightning['watch'] = (onSettled, signal) =>
    watchCln(
      { call, cursor, timeouts, onWarning },
      onSettled,
      AbortSignal.any([signal, closing.signal]),
    )

  async function checkAccess(): Promise<AccessProblem | null> {
    const probes: Parameters<ClnCall>[0][] = [
      // Neither makes nor waits for anything: an unknown hash, an amount that is none, no wait.
      probe('listinvoices', { payment_hash: '00'.repeat(32) }),
      probe('invoice', { amount_msat: 'none', label: 'mayfly', description: 'mayfly' }),
      probe('waitanyinvoice', { timeout: 0 }),
    ]
    try {
      await info()
    } catch (error) {
      return problem(error, 'getinfo')
    }
    for (const ask of probes) {
      try {
        await call(ask)
      } catch (error) {
        if (isAccepted(error)) continue
        return problem(error, ask.method)
      }
    }
    return null
  }

  function probe(method: string, params: Fields): Parameters<ClnCall>[0] {
    return { what: 'trying the rune', method, params, timeoutMs: timeouts.infoMs }
  }

  function problem(error: unknown, method: string): AccessProblem {
    if (!(error instanceof NodeError)) throw error
    return accessProblem(error, {
      baseUrl,
      speaks: 'speaks HTTPS as clnrest does',
      port: 'the port of clnrest',
      certificate: 'use the ca.pem of clnrest, made for that host',
      refused: ({ answer, message }) =>
        isAboutRune(answer)
          ? `Core Lightning: the rune does not allow ${method} (${answer?.message}); ${CREATE_RUNE}`
          : message,
    })
  }

  return {
    info,
    createInvoice,
    lookupInvoice,
    watch,
    checkAccess,
    close() {
      closing.abort()
      return http.close()
    },
  }
}

/** JSON-RPC's refusal of the parameters, or a wait that is over: the rune was good for it. */
function isAccepted(error: unknown): boolean {
  return error instanceof NodeError && error.reason === 'refused' && !isAboutRune(error.answer)
}

const RUNE_CODES = new Set<unknown>([401, 403, 1501, 1502])

function isAboutRune(answer: NodeError['answer']): boolean {
  return RUNE_CODES.has(answer?.code)
}

/** clnrest's `{code, message}`, in some versions inside of `error`. */
function refusal(what: string, status: number, text: string): NodeError {
  const isAccess = status === 401 || status === 403
  try {
    const body = read.parse(text)
    const { code, message } = typeof body.error === 'object' ? read.object(body.error) : body
    if (typeof message === 'string') {
      const answer = {
        code: isAccess ? status : typeof code === 'number' ? code : status,
        message: quotable(message),
      }
      return new NodeError(NODE, 'refused', `${what} was refused: ${answer.message}`, answer)
    }
  } catch {
    // Not clnrest's, then.
  }
  return new NodeError(NODE, 'malformed', `${what} got HTTP ${status} that is not clnrest's`)
}

function statusOf(status: string): InvoiceStatus {
  switch (status) {
    case 'unpaid':
      return { state: 'open' }
    case 'paid':
      return { state: 'settled' }
    case 'expired':
      return { state: 'dead', isFinal: true }
    default:
      throw read.malformed('an invoice is in an unknown state')
  }
}
