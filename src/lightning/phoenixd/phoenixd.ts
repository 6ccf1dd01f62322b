/** phoenixd over its HTTP API, as of version 0.7. */
import { Agent, WebSocket } from 'undici'
import { unlessAborted } from '../../lib/abort.ts'
import type { Clock } from '../../lib/clock.ts'
import { objectIn } from '../../lib/json.ts'
import {
  type InvoiceRequest,
  type InvoiceStatus,
  type NodeInfo,
  UnknownInvoice,
} from '../lightning.ts'
import { findProblem } from '../node/access.ts'
import { expiryOf, unpaidStatus } from '../node/check-invoice.ts'
import { type NodeAnswer, NodeError, supportedNetwork } from '../node/error.ts'
import { createNodeHttp, type NodeResponse } from '../node/http.ts'
import { type Fields, jsonOf, nodeIdOf } from '../node/json-fields.ts'
import { createNode, type LightningNode, NODE_TIMEOUTS, type NodeTimeouts } from '../node/node.ts'
import { type FollowOptions, keepFollowing } from '../node/watch.ts'
import type { PhoenixdAccess } from '../urls.ts'

export type PhoenixdOptions = PhoenixdAccess & {
  clock: Clock
  timeouts?: Partial<NodeTimeouts>
  onWarning?: (message: string) => void
}

const NODE = 'phoenixd'
const read = jsonOf(NODE)

/** Makes invoices only for whole satoshis, like phoenixd. */
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
    answerOf,
  })
  const { call } = http

  async function info(): Promise<NodeInfo> {
    const path = '/getinfo'
    const timeoutMs = timeouts.infoMs
    const answer = await call({ what: 'asking for the node', method: 'GET', path, timeoutMs })
    const network = supportedNetwork(NODE, read.string(answer, 'chain').toLowerCase())
    // The height is missing until phoenixd has seen the chain.
    const synced = (read.count(answer, 'blockHeight') ?? 0) > 0
    return { network, synced, nodeId: nodeIdOf(answer.nodeId) }
  }

  async function createInvoice({ amountMsat, memo, expirySeconds }: InvoiceRequest) {
    const answer = await call({
      what: 'making an invoice',
      method: 'POST',
      path: '/createinvoice',
      form: {
        description: memo,
        amountSat: String(amountMsat / 1000),
        expirySeconds: String(expirySeconds),
      },
      timeoutMs: timeouts.createMs,
    })
    return {
      bolt11: read.string(answer, 'serialized'),
      paymentHash: read.hash(answer, 'paymentHash'),
    }
  }

  async function lookupInvoice(paymentHash: string): Promise<InvoiceStatus> {
    const answer = await fetchInvoice(paymentHash)
    if (read.hash(answer, 'paymentHash') !== paymentHash) {
      throw read.malformed('the node answered for another invoice')
    }
    return statusOf(answer, clock.now())
  }

  async function fetchInvoice(paymentHash: string): Promise<Fields> {
    try {
      return await call({
        what: 'looking up an invoice',
        method: 'GET',
        path: `/payments/incoming/${paymentHash}`,
        timeoutMs: timeouts.lookupMs,
      })
    } catch (error) {
      // phoenixd also answers 404 for unknown paths. info() notices if this is another server.
      const isUnknown = error instanceof NodeError && error.answer?.code === 404
      throw isUnknown ? new UnknownInvoice() : error
    }
  }

  const checkAccess = () =>
    findProblem({
      baseUrl,
      speaks: 'speaks HTTP as phoenixd does',
      port: 'the HTTP port of phoenixd',
      certificate: 'use that of the proxy before phoenixd',
      // Its two passwords differ in what may be paid alone.
      info: { needs: 'the password', call: info },
      trials: [],
      denied: ({ code }) => (code === 401 ? WRONG_PASSWORD : null),
    })

  const access = { baseUrl, authorization, certificate }
  return createNode(
    {
      info,
      createInvoice,
      lookupInvoice,
      watch: (onSettled, signal) =>
        watchPhoenixd({ ...access, timeouts, probe: info, onWarning, signal }, onSettled),
      checkAccess,
      close: () => http.close(),
    },
    { clock, amountStepMsat: 1000 },
  )
}

/** A refusal of phoenixd itself is a line of text. */
const answerOf = ({ status, text }: NodeResponse): NodeAnswer | null =>
  status < 500 && !text.trimStart().startsWith('<') ? { code: status, message: text } : null

const WRONG_PASSWORD =
  'phoenixd does not accept the password of MAYFLY_LIGHTNING_URL; it is the ' +
  'http-password-limited-access in its phoenix.conf, percent-encoded'

/** Ignores `preimage`, which is set before the payment, and `receivedSat`, from which fees are deducted. */
function statusOf(answer: Fields, now: number): InvoiceStatus {
  if (read.boolean(answer, 'isPaid')) return { state: 'settled' }
  return unpaidStatus(read.count(answer, 'expiresAt') ?? expiryOf(answer.invoice), now)
}

// An event has about 200 bytes.
const MAX_EVENT_BYTES = 64 * 1024

/**
 * The websocket has a hint for each payment. phoenixd does not repeat one that was lost.
 * Ends only when `signal` aborts. Events that come without a connection are lost.
 * @param authorization the value of the header.
 */
async function watchPhoenixd(
  {
    baseUrl,
    authorization,
    certificate,
    ...options
  }: Pick<PhoenixdAccess, 'baseUrl' | 'certificate'> &
    Omit<FollowOptions, 'node'> & { authorization: string; timeouts: NodeTimeouts },
  onSettled: (paymentHash: string) => void,
): Promise<void> {
  const { timeouts, onWarning } = options
  const dispatcher = new Agent({
    connect: { timeout: timeouts.connectMs, ca: certificate },
    webSocket: { maxPayloadSize: MAX_EVENT_BYTES },
  })

  async function follow(onAlive: () => void, connection: AbortController): Promise<never> {
    const socket = new WebSocket(`${baseUrl.replace(/^http/, 'ws')}/websocket`, {
      headers: { authorization },
      dispatcher,
    })
    const ended = () =>
      connection.abort(new NodeError(NODE, 'the websocket was closed', { reason: 'unreachable' }))
    socket.addEventListener('open', onAlive)
    socket.addEventListener('error', ended)
    socket.addEventListener('close', ended)
    socket.addEventListener('message', ({ data }) => {
      try {
        tell(data)
      } catch (error) {
        // Nobody else would catch it.
        connection.abort(error)
      }
    })
    try {
      return await unlessAborted(connection.signal, new Promise<never>(() => {}))
    } finally {
      socket.close()
    }
  }

  function tell(data: unknown): void {
    const paymentHash = receivedHash(data)
    if (paymentHash !== null) onSettled(paymentHash)
    else if (!isOtherEvent(data)) onWarning(`${NODE}: an event of the websocket is unreadable`)
  }

  await keepFollowing(follow, { ...options, node: NODE })
  await dispatcher.destroy()
}

/** The payment hash of a `payment_received`, or null. */
function receivedHash(data: unknown): string | null {
  const event = eventOf(data)
  if (event?.type !== 'payment_received') return null
  const { paymentHash } = event
  return typeof paymentHash === 'string' && /^[0-9a-f]{64}$/.test(paymentHash) ? paymentHash : null
}

function isOtherEvent(data: unknown): boolean {
  const type = eventOf(data)?.type
  return typeof type === 'string' && type !== 'payment_received'
}

function eventOf(data: unknown): { type?: unknown; paymentHash?: unknown } | null {
  return typeof data === 'string' ? objectIn(data) : null
}
