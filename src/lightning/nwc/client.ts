/** The client of @getalby/sdk for NIP-47, made quiet. */
import { NWCClient } from '@getalby/sdk/nwc'

export type QuietNwcClient = {
  client: NWCClient
  /** The wallet's result, unchecked. @throws the client's own errors; `code` is NIP-47's. */
  request(method: string, params: Record<string, unknown>, timeoutMs: number): Promise<unknown>
}

/**
 * Internal methods of the client. Its public methods print every failure to the console, including
 * results with preimages, and wait a minute; these do neither. test/contract/nwc.test.ts fails if a
 * new version of the client changes them.
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

export function createNwcClient(url: string): QuietNwcClient {
  const client = new NWCClient({ nostrWalletConnectUrl: url })
  const inside = client as unknown as Inside
  inside._checkConnected = async () => {
    await Promise.any(client.relayUrls.map((relay) => client.pool.ensureRelay(relay)))
  }
  const decrypt = client.decrypt.bind(client)
  // The client does not catch failures of `decrypt`. An empty text is later refused as JSON.
  client.decrypt = (pubkey, content) => decrypt(pubkey, content).catch(() => '')
  return {
    client,
    request: (method, params, timeoutMs) =>
      inside.executeNip47Request(method, params, () => true, {
        replyTimeout: timeoutMs,
        publishTimeout: timeoutMs,
      }),
  }
}
