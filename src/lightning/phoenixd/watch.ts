/** phoenixd's websocket: a hint for each payment. phoenixd does not repeat a hint that was lost. */
import { Agent, WebSocket } from 'undici'
import { unlessAborted } from '../../lib/abort.ts'
import { objectIn } from '../../lib/json.ts'
import { NodeError } from '../node/error.ts'
import type { NodeTimeouts } from '../node/node.ts'
import { type FollowOptions, keepFollowing } from '../node/watch.ts'

const NODE = 'phoenixd'

// An event has about 200 bytes.
const MAX_EVENT_BYTES = 64 * 1024

export type PhoenixdWatchOptions = Omit<FollowOptions, 'node'> & {
  baseUrl: string
  /** The value of the `Authorization` header. */
  authorization: string
  certificate: string | undefined
  timeouts: NodeTimeouts
}

/** Ends only when `signal` aborts. Events that come without a connection are lost. */
export async function watchPhoenixd(
  { baseUrl, authorization, certificate, ...options }: PhoenixdWatchOptions,
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
