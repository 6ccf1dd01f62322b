/** phoenixd over its HTTP API, as of version 0.7. */
import type { Clock } from '../../lib/clock.ts'
import { decodeInvoice, InvalidInvoice } from '../../protocol/bolt11.ts'
import { type InvoiceStatus, type Lightning, type Network, UnknownInvoice } from '../lightning.ts'
import { type AccessProblem, accessProblem } from '../node/access.ts'
import { checkAsk, checkInvoice } from '../node/check-invoice.ts'
import { NodeError, quotable, supportedNetwork } from '../node/error.ts'
import { createNodeHttp, type NodeAsk } from '../node/http.ts'
import { nodeIdOf } from '../node/id.ts'
import { type Fields, jsonOf } from '../node/json-fields.ts'
import type { LightningNode } from '../node/node.ts'
import { NODE_TIMEOUTS, type NodeTimeouts } from '../node/timeouts.ts'
import type { PhoenixdAccess } from './url.ts'
import { watchPhoenixd } from './watch.ts'

export type PhoenixdOptions = PhoenixdAccess & {
  clock: Clock
  timeouts?: Partial<NodeTimeouts>
  onWarning?: (message: string) => void
}

const NODE = 'phoenixd'
const read = jsonOf(NODE)

/** phoenixd refuses a longer description; the rest of a memo is left out. */
const MAX_DESCRIPTION_CHARACTERS = 128

// phoenixd has no final state for what was not paid. This long after its expiry an HTLC of an invoice is
// hardly still under way, and what we say then is a guess.
const GRACE_MS = 10 * 60_000

/** Makes invoices of whole sats only, as phoenixd does. */
export function createPhoenixd(options: PhoenixdOptions): LightningNode {
  const { baseUrl, password, certificate, clock, onWarning = () => {} } = options
  const timeouts = { ...NODE_TIMEOUTS, ...options.timeouts }
  const authorization = `Basic ${Buffer.from(`:${password}`).toString('base64')}`
  const http = createNodeHttp({
    node: NODE,
    baseUrl,
    headers: { authorization },
    certificate,
    connectTimeoutMs: timeouts.connectMs,
  })
  const closing = new AbortController()
  let network: Network | undefined

  async function call(ask: NodeAsk): Promise<Fields> {
    const { status, text } = await http.exchange(ask)
    if (status === 200) return read.parse(text)
    const message = quotable(text)
    // phoenixd's own refusals are a line of text.
    const isOurs = status < 500 && !text.trimStart().startsWith('<')
    if (!isOurs) throw new NodeError(NODE, 'malformed', `${ask.what} got HTTP ${status}`)
    const answer = { code: status, message }
    throw new NodeError(NODE, 'refused', `${ask.what} was refused: ${message}`, answer)
  }

  async function info() {
    const path = '/getinfo'
    const timeoutMs = timeouts.infoMs
    const answer = await call({ what: 'asking for the node', method: 'GET', path, timeoutMs })
    network = supportedNetwork(NODE, read.string(answer, 'chain').toLowerCase())
    // Left out until phoenixd has heard of the chain.
    const synced = (read.count(answer, 'blockHeight') ?? 0) > 0
    return { network, synced, nodeId: nodeIdOf(answer.nodeId) }
  }

  const createInvoice: Lightning['createInvoice'] = async (ask) => {
    checkAsk(ask)
    if (ask.amountMsat % 1000 !== 0) throw new RangeError('amountMsat must be whole satoshis')
    const expected = network ?? (await info()).network
    const answer = await call({
      what: 'making an invoice',
      method: 'POST',
      path: '/createinvoice',
      form: {
        description: shortened(ask.memo),
        amountSat: String(ask.amountMsat / 1000),
        expirySeconds: String(ask.expirySeconds),
      },
      timeoutMs: timeouts.createMs,
    })
    const bolt11 = read.string(answer, 'serialized')
    const paymentHash = read.hash(answer, 'paymentHash')
    checkInvoice(bolt11, paymentHash, ask, expected, clock.now())
    return { bolt11, paymentHash }
  }

  const lookupInvoice: Lightning['lookupInvoice'] = async (paymentHash) => {
    if (!/^[0-9a-f]{64}$/.test(paymentHash)) throw new TypeError('not a payment hash')
    const answer = await look(paymentHash)
    if (read.hash(answer, 'paymentHash') !== paymentHash) {
      throw read.malformed('the node answered for another invoice')
    }
    return statusOf(answer, clock.now())
  }

  async function look(paymentHash: string): Promise<Fields> {
    try {
      return await call({
        what: 'looking up an invoice',
        method: 'GET',
        path: `/payments/incoming/${paymentHash}`,
        timeoutMs: timeouts.lookupMs,
      })
    } catch (error) {
      // The same words as for a path that it does not know: whose port this is, info() tells.
      const isUnknown = error instanceof NodeError && error.answer?.code === 404
      throw isUnknown ? new UnknownInvoice() : error
    }
  }

  const watch: Lightning['watch'] = (onSettled, signal) =>
    watchPhoenixd(
      { baseUrl, authorization, certificate, timeouts, probe: info, onWarning },
      onSettled,
      AbortSignal.any([signal, closing.signal]),
    )

  async function checkAccess(): Promise<AccessProblem | null> {
    try {
      await info()
      return null
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      return accessProblem(error, {
        baseUrl,
        speaks: 'speaks HTTP as phoenixd does',
        port: 'the HTTP port of phoenixd',
        certificate: 'use that of the proxy before phoenixd',
        refused: sentenceOfRefusal,
      })
    }
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

function sentenceOfRefusal(error: NodeError): string {
  if (error.answer?.code !== 401) return error.message
  return (
    'phoenixd does not accept the password of MAYFLY_LIGHTNING_URL; it is the ' +
    'http-password-limited-access in its phoenix.conf, percent-encoded'
  )
}

/** `preimage` is there before the payment, and `receivedSat` is less fees: neither is asked. */
function statusOf(answer: Fields, now: number): InvoiceStatus {
  if (read.boolean(answer, 'isPaid')) return { state: 'settled' }
  const expiresAt = read.count(answer, 'expiresAt') ?? expiryOf(answer)
  return expiresAt !== undefined && now > expiresAt + GRACE_MS
    ? { state: 'dead', isFinal: false }
    : { state: 'open' }
}

function expiryOf({ invoice }: Fields): number | undefined {
  if (typeof invoice !== 'string') return undefined
  try {
    return decodeInvoice(invoice).expiresAt
  } catch (error) {
    if (error instanceof InvalidInvoice) return undefined
    throw error
  }
}

function shortened(memo: string): string {
  if (memo.length <= MAX_DESCRIPTION_CHARACTERS) return memo
  return `${memo.slice(0, MAX_DESCRIPTION_CHARACTERS - 1).toWellFormed()}…`
}
