/** The wallet that `MAYFLY_WALLET_URL` names, in the forms of `MAYFLY_LIGHTNING_URL`. */
import { Agent, fetch as undiciFetch } from 'undici'
import type { Wallet } from '../client/wallet.ts'
import { clnWallet } from '../client/wallets/cln.ts'
import { lndWallet } from '../client/wallets/lnd.ts'
import { nwcWallet } from '../client/wallets/nwc.ts'
import { phoenixdWallet } from '../client/wallets/phoenixd.ts'
import { simulatorWallet } from '../client/wallets/simulator.ts'
import {
  BACKEND_FORMS,
  backendOf,
  readClnUrl,
  readLndUrl,
  readNwcUrl,
  readPhoenixdUrl,
} from '../lightning/urls.ts'
import type { Cli } from './cli.ts'

const SETTING = 'MAYFLY_WALLET_URL'
// A payment may take long to find a route, while a look-up is quick.
const NWC_PAY_MS = 60_000
const NWC_LOOKUP_MS = 10_000

type Paid = { preimage: string }

type OpenWallet = { wallet: Wallet; close(): Promise<void> }

/**
 * Sends no request to the node. `traced` is told of each later one, but of none over Nostr.
 * @param cli.url for `simulator:`, the service whose simulator pays.
 * @throws Error that names the setting and what is wrong with it.
 */
export async function openWallet(
  url: string,
  { url: serviceUrl, traced }: Pick<Cli, 'url' | 'traced'>,
): Promise<OpenWallet> {
  /** Over HTTP, trusting the node's certificate alone. */
  const pinned = (
    { baseUrl, certificate }: { baseUrl: string; certificate?: string | undefined },
    make: (to: { url: string; fetch: typeof globalThis.fetch }) => Wallet,
  ): OpenWallet => {
    const { fetch, close } = pinnedFetch(certificate)
    return { wallet: make({ url: baseUrl, fetch: traced(fetch) }), close }
  }
  const kind = backendOf(url)
  switch (kind) {
    case 'simulator':
      return {
        wallet: simulatorWallet({ baseUrl: serviceUrl, fetch: traced(globalThis.fetch) }),
        close: async () => {},
      }
    case 'lnd': {
      const node = await readLndUrl(url, SETTING)
      return pinned(node, (to) => lndWallet({ ...to, macaroonHex: node.macaroon }))
    }
    case 'phoenixd': {
      const node = await readPhoenixdUrl(url, SETTING)
      return pinned(node, (to) => phoenixdWallet({ ...to, password: node.password }))
    }
    case 'cln': {
      const node = await readClnUrl(url, SETTING)
      return pinned(node, (to) => clnWallet({ ...to, rune: node.rune }))
    }
    case 'nwc': {
      const access = readNwcUrl(url, SETTING)
      // Loaded only when needed, since it is large.
      const { createNwcClient } = await import('../lightning/nwc/client.ts')
      const { request, close } = createNwcClient(access.url)
      const { host, pathname } = new URL(access.url)
      const wallet = nwcWallet({
        walletPubkey: host || pathname,
        payInvoice: (ask) => request('pay_invoice', ask, NWC_PAY_MS) as Promise<Paid>,
        lookupInvoice: (ask) => request('lookup_invoice', ask, NWC_LOOKUP_MS),
      })
      return { wallet, close: async () => close() }
    }
    case null:
      throw new Error(`${SETTING} must be ${BACKEND_FORMS}`)
    default:
      return kind satisfies never
  }
}

/** A fetch that trusts only this certificate, or the system's roots without one. */
export function pinnedFetch(certificate: string | undefined) {
  const dispatcher = new Agent({
    connect: { timeout: 5_000, ...(certificate === undefined ? {} : { ca: certificate }) },
  })
  // The types of the two fetches differ only in fields that are not used here.
  const fetch = ((input: string, init: RequestInit) =>
    undiciFetch(input, { ...init, dispatcher } as Parameters<
      typeof undiciFetch
    >[1])) as unknown as typeof globalThis.fetch
  return { fetch, close: () => dispatcher.destroy() }
}
