import { simulatorWallet } from '../../../src/client/wallets/simulator.ts'
import { startServer } from '../../support/server.ts'
import { losingFetch, walletContract } from '../wallets.ts'

walletContract('simulator', async () => {
  const cleanups: (() => unknown)[] = []
  const server = await startServer({ after: (cleanup) => cleanups.push(cleanup as () => unknown) })
  const orders = new Map<string, string>()

  async function invoice(): Promise<string> {
    const response = await fetch(`${server.url}/api/payments/catch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() },
      body: '{"planId":"spark"}',
    })
    const { bolt11, orderId } = (await response.json()) as { bolt11: string; orderId: string }
    orders.set(bolt11, orderId)
    return bolt11
  }

  return {
    wallet: simulatorWallet({ baseUrl: server.url }),
    losingAnswer: () => simulatorWallet({ baseUrl: server.url, fetch: losingFetch(() => true) }),
    away: () => simulatorWallet({ baseUrl: 'http://127.0.0.1:9', timeoutMs: 1000 }),
    invoice,
    async unpayable() {
      const bolt11 = await invoice()
      server.clock.advance(60 * 60 * 1000)
      return bolt11
    },
    async timesPaid(bolt11) {
      const status = async () =>
        (await fetch(`${server.url}/api/payments/${orders.get(bolt11)}`)).status
      return (await status()) === 402 ? 0 : 1
    },
    async close() {
      for (const cleanup of cleanups.reverse()) await cleanup()
    },
  }
})
