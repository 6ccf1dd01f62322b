/** phoenixd's websocket: a hint for each payment. phoenixd does not repeat a hint that was lost. */
import { Agent, WebSocket } from 'undici'
import { objectIn } from '../../lib/json.ts'
import { NodeError } from '../node/error.ts'
import type { NodeTimeouts } from '../node/node.ts'
import { keepFollowing, probeUntilDead } from '../node/watch.ts'

export type PhoenixdWatchOptions = {
  baseUrl: string
  /** The value of the `Authorization` header. */
  authorization: string
  certificate: string | undefined
  timeouts: NodeTimeouts
  /** Throws unless the node answers in time. */
  probe: () => Promise<unknown>
  onWarning: (message: string) => void
}

const NODE = 'phoenixd'

// An event has about 200 bytes.
const MAX_EVENT_BYTES = 64 * 1024

/** Ends only when `signal` aborts. Events that come without a connection are lost. */
export async function watchPhoenixd(
  options: PhoenixdWatchOptions,
  onSettled: (paymentHash: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { certificate, timeouts, onWarning } = options
  const dispatcher = new Agent({
    connect: { timeout: timeouts.connectMs, ca: certificate },
    webSocket: { maxPayloadSize: MAX_EVENT_BYTES },
  })
  await keepFollowing((onAlive) => follow({ ...options, dispatcher, onSettled, signal, onAlive }), {
    node: NODE,
    timeouts,
    onWarning,
    signal,
  })
  await dispatcher.destroy()
}

/** Follows one connection until it fails. */
async function follow(
  options: PhoenixdWatchOptions & {
    dispatcher: Agent
    onSettled: (paymentHash: string) => void
    signal: AbortSignal
    onAlive: () => void
  },
): Promise<never> {
  const { baseUrl, authorization, dispatcher, signal, onAlive, onSettled, onWarning } = options
  const connection = new AbortController()
  const hangUp = () => connection.abort(signal.reason)
  signal.addEventListener('abort', hangUp)
  const socket = new WebSocket(`${baseUrl.replace(/^http/, 'ws')}/websocket`, {
    headers: { authorization },
    dispatcher,
  })
  const { probe, timeouts } = options
  probeUntilDead(connection, { probe, probeEveryMs: timeouts.probeEveryMs, onAlive })
  try {
    return await new Promise<never>((_, reject) => {
      const ended = () => new NodeError(NODE, 'the websocket was closed', { reason: 'unreachable' })
      socket.addEventListener('open', onAlive)
      socket.addEventListener('message', ({ data }) => {
        const paymentHash = receivedHash(data)
        try {
          if (paymentHash !== null) onSettled(paymentHash)
          else if (!isOtherEvent(data)) {
            onWarning(`${NODE}: an event of the websocket is unreadable`)
          }
        } catch (error) {
          // Nobody else would catch it.
          reject(error)
        }
      })
      socket.addEventListener('error', () => reject(ended()))
      socket.addEventListener('close', () => reject(ended()))
      connection.signal.addEventListener('abort', () => reject(connection.signal.reason))
    })
  } finally {
    signal.removeEventListener('abort', hangUp)
    connection.abort()
    socket.close()
  }
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
