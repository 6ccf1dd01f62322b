/** The client of @getalby/sdk for NIP-47, without its output to the console. */
import { NWCClient } from '@getalby/sdk/nwc'
import { isObject, objectIn } from '../../lib/json.ts'

export type NwcClient = {
  /** The wallet's unchecked result. @throws the client's own errors, whose `code` is NIP-47's. */
  request(method: string, params: Record<string, unknown>, timeoutMs: number): Promise<unknown>
  /** Tells of the payments that the wallet receives, unchecked, until the returned function is called. */
  subscribe(onPayment: (notification: unknown) => void): Promise<() => void>
  close(): void
}

/**
 * Internal methods of the client. Its public methods wait for a minute, and print every failure to the
 * console, even results with preimages. test/contract/nwc.test.ts fails if a new version of the client
 * changes these methods.
 */
type Inside = {
  _checkConnected(): Promise<void>
  executeNip47Request(
    method: string,
    params: Record<string, unknown>,
    isValid: (result: unknown) => boolean,
    timeouts: { replyTimeout: number; publishTimeout: number },
  ): Promise<unknown>
}

export function createNwcClient(url: string): NwcClient {
  const client = new NWCClient({ nostrWalletConnectUrl: url })
  const inside = client as unknown as Inside
  inside._checkConnected = async () => {
    await Promise.any(client.relayUrls.map((relay) => client.pool.ensureRelay(relay)))
  }
  const decrypt = client.decrypt.bind(client)
  // The client does not catch what `decrypt` throws, and that would end this process.
  client.decrypt = async (pubkey, content) =>
    readable(await decrypt(pubkey, content).catch(() => ''))
  return {
    request: (method, params, timeoutMs) =>
      inside.executeNip47Request(method, params, () => true, {
        replyTimeout: timeoutMs,
        publishTimeout: timeoutMs,
      }),
    subscribe: (onPayment) => client.subscribeNotifications(onPayment, ['payment_received']),
    close: () => client.close(),
  }
}

/**
 * A text of the wallet, or an empty one, which the client refuses as no JSON, in place of a text at which the client
 * would throw and so end this process (no object, or a refusal whose code or message cannot become text), or that it
 * would print (a notification without a payment).
 */
export function readable(text: string): string {
  const answer = objectIn(text)
  if (answer === null) return ''
  const { code, message } = isObject(answer.error) ? answer.error : {}
  if ([code, message].some((field) => typeof field === 'object' && field !== null)) return ''
  return 'notification_type' in answer && !isObject(answer.notification) ? '' : text
}
