/** The client of @getalby/sdk for NIP-47, made quiet. */
import { NWCClient } from '@getalby/sdk/nwc'

export type QuietNwcClient = {
  client: NWCClient
  /** The wallet's result, unchecked. @throws the client's own errors; `code` is NIP-47's. */
  request(method: string, params: Record<string, unknown>, timeoutMs: number): Promise<unknown>
}

/**
 * What the client's own methods are made of. They print every failure to the console, results with
 * preimages among them, and wait a minute; asked directly it does neither. test/contract/nwc.test.ts
 * tells when a new version of the client is made of something else.
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
  // Where the client decrypts nobody is there to catch; what is unreadable then is no JSON.
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
