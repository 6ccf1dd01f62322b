/** Requests to a wallet over Nostr, bounded in time, and its notifications of payments. */
import {
  Nip47ResponseDecodingError,
  Nip47TimeoutError,
  Nip47UnsupportedEncryptionError,
  Nip47WalletError,
} from '@getalby/sdk/nwc'
import { unlessAborted } from '../../lib/abort.ts'
import { isObject } from '../../lib/json.ts'
import { quotable } from '../../lib/quotable.ts'
import { NodeError } from '../node/error.ts'
import type { Fields } from '../node/json-fields.ts'
import type { NodeTimeouts } from '../node/node.ts'
import { keepFollowing } from '../node/watch.ts'
import type { NwcClient } from './client.ts'

export type NwcCall = {
  /** What the call does, for error messages. */
  what: string
  method: 'get_info' | 'make_invoice' | 'lookup_invoice'
  params: Fields
  timeoutMs: number
}

const NODE = 'NWC'

export function createNwcCalls(options: {
  client: NwcClient
  timeouts: NodeTimeouts
  onWarning: (message: string) => void
}) {
  const { client, timeouts, onWarning } = options

  /** The wallet's result. @throws NodeError */
  const call = ({ what, method, params, timeoutMs }: NwcCall): Promise<unknown> =>
    answered(what, { work: client.request(method, params, timeoutMs), withinMs: timeoutMs })

  /** Ends only when `signal` aborts. Notifications that come without a connection to a relay are lost. */
  function watch(onSettled: (paymentHash: string) => void, signal: AbortSignal): Promise<void> {
    /** The client itself reconnects. */
    async function follow(onAlive: () => void, connection: AbortController): Promise<never> {
      const subscribed = client.subscribe(tell).then((unsubscribe) => {
        // The connection may have been aborted during the subscription.
        if (connection.signal.aborted) unsubscribe()
        else connection.signal.addEventListener('abort', unsubscribe)
      })
      await answered('following the payments', {
        work: unlessAborted(connection.signal, subscribed),
        withinMs: timeouts.infoMs,
      })
      onAlive()
      return await unlessAborted(connection.signal, new Promise<never>(() => {}))

      function tell(notification: unknown): void {
        const paymentHash = receivedHash(notification)
        if (paymentHash === null) return
        try {
          onSettled(paymentHash)
        } catch (error) {
          // The client does not catch it.
          connection.abort(error)
        }
      }
    }
    const what = 'asking for the wallet'
    const probe = () => call({ what, method: 'get_info', params: {}, timeoutMs: timeouts.infoMs })
    return keepFollowing(follow, { node: NODE, timeouts, onWarning, signal, probe })
  }

  return { call, watch, close: (): void => client.close() }
}

/** The payment hash in a notification of a payment, or null. */
function receivedHash(notification: unknown): string | null {
  const payment = isObject(notification) ? notification.notification : null
  const hash = isObject(payment) ? payment.payment_hash : null
  return typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) ? hash : null
}

/** What the client answers, in time. @throws NodeError */
async function answered<T>(
  what: string,
  { work, withinMs }: { work: Promise<T>; withinMs: number },
): Promise<T> {
  try {
    return await unlessAborted(AbortSignal.timeout(withinMs), work)
  } catch (error) {
    throw failureOf(what, error)
  }
}

function failureOf(what: string, error: unknown): NodeError {
  if (error instanceof Nip47TimeoutError || isTimeout(error) || isWithoutWallet(error)) {
    return new NodeError(NODE, `${what} took too long`, { reason: 'timeout' })
  }
  if (error instanceof Nip47WalletError) {
    // The client does not check that a wallet's code is a text.
    const answer = { code: quotable(String(error.code)), message: quotable(error.message) }
    const words = `${what} was refused: ${answer.code}, ${answer.message}`
    return new NodeError(NODE, words, { reason: 'refused', answer })
  }
  const isUnreadable =
    error instanceof Nip47ResponseDecodingError || error instanceof Nip47UnsupportedEncryptionError
  if (isUnreadable)
    return new NodeError(NODE, `${what} got an unreadable answer`, { reason: 'malformed' })
  return new NodeError(NODE, `${what} failed`, { reason: 'unreachable' })
}

/** Of `AbortSignal.timeout`. */
const isTimeout = (error: unknown): boolean =>
  error instanceof Error && error.name === 'TimeoutError'

/** Whether the relay has no info event of the wallet. The client has no error class for this. */
function isWithoutWallet(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('no info event')
}
