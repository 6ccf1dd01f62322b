/** Requests to a wallet over Nostr, bounded in time, and its notifications of payments. */
import {
  Nip47ResponseDecodingError,
  Nip47TimeoutError,
  Nip47UnsupportedEncryptionError,
  Nip47WalletError,
} from '@getalby/sdk/nwc'
import { unlessAborted } from '../../lib/abort.ts'
import { NodeError, quotable } from '../node/error.ts'
import type { Fields } from '../node/json-fields.ts'
import type { NodeTimeouts } from '../node/timeouts.ts'
import { keepFollowing, probeUntilDead } from '../node/watch.ts'
import { createNwcClient } from './client.ts'

export type NwcCall = {
  /** What the call does, for error messages. */
  what: string
  method: 'get_info' | 'make_invoice' | 'lookup_invoice'
  params: Fields
  timeoutMs: number
}

export type NwcCalls = {
  /** The wallet's result. @throws NodeError */
  call(request: NwcCall): Promise<unknown>
  /** Ends only when `signal` aborts. Notifications that come without a connection to a relay are lost. */
  watch(onSettled: (paymentHash: string) => void, signal: AbortSignal): Promise<void>
  close(): void
}

const NODE = 'NWC'

export function createNwcCalls(options: {
  url: string
  timeouts: NodeTimeouts
  onWarning: (message: string) => void
}): NwcCalls {
  const { url, timeouts, onWarning } = options
  const { client, request } = createNwcClient(url)

  async function call({ what, method, params, timeoutMs }: NwcCall): Promise<unknown> {
    try {
      return await within(timeoutMs, request(method, params, timeoutMs))
    } catch (error) {
      throw failureOf(what, error)
    }
  }

  const watch: NwcCalls['watch'] = async (onSettled, signal) => {
    await keepFollowing((onAlive) => follow({ onSettled, signal, onAlive }), {
      node: NODE,
      timeouts,
      onWarning,
      signal,
    })
  }

  /** The client itself reconnects. This probes the wallet from time to time. */
  async function follow(following: {
    onSettled: (paymentHash: string) => void
    signal: AbortSignal
    onAlive: () => void
  }): Promise<never> {
    const { onSettled, signal, onAlive } = following
    const connection = new AbortController()
    const hangUp = () => connection.abort(signal.reason)
    signal.addEventListener('abort', hangUp)
    let unsubscribe = () => {}
    try {
      const subscribed = client
        .subscribeNotifications(
          (notification) => {
            const paymentHash = receivedHash(notification)
            if (paymentHash !== null) onSettled(paymentHash)
          },
          ['payment_received'],
        )
        .then((end) => {
          unsubscribe = end
          // The connection was aborted during the subscription.
          if (connection.signal.aborted) end()
        })
      await within(timeouts.infoMs, unlessAborted(connection.signal, subscribed))
      onAlive()
      const probe = () =>
        call({
          what: 'asking for the wallet',
          method: 'get_info',
          params: {},
          timeoutMs: timeouts.infoMs,
        })
      probeUntilDead(connection, { probe, probeEveryMs: timeouts.probeEveryMs, onAlive })
      return await unlessAborted(connection.signal, new Promise<never>(() => {}))
    } catch (error) {
      throw failureOf('following the payments', error)
    } finally {
      signal.removeEventListener('abort', hangUp)
      connection.abort()
      unsubscribe()
    }
  }

  return { call, watch, close: () => client.close() }
}

/** The payment hash of a `payment_received`, or null for any other notification. */
function receivedHash(notification: unknown): string | null {
  const { notification: transaction } = notification as { notification?: unknown }
  if (typeof transaction !== 'object' || transaction === null) return null
  if (!('payment_hash' in transaction)) return null
  const { payment_hash: paymentHash } = transaction
  return typeof paymentHash === 'string' && /^[0-9a-f]{64}$/.test(paymentHash) ? paymentHash : null
}

function failureOf(what: string, error: unknown): NodeError {
  if (error instanceof NodeError) return error
  if (error instanceof Nip47TimeoutError || error instanceof TimedOut || isWithoutWallet(error)) {
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

/** Whether the relay has no info event of the wallet. The client has no error class for this. */
function isWithoutWallet(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('no info event')
}

class TimedOut extends Error {
  override name = 'TimeoutError'
}

async function within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimedOut()), milliseconds)
  })
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}
