/** A wallet on the simulator. It records its calls, and a test can make it fail. */
import { type Wallet, WalletError } from '../../src/client/index.ts'
import { simulatorWallet } from '../../src/client/wallets/simulator.ts'

export function testWallet({ url }: { url: string }) {
  const simulator = simulatorWallet({ baseUrl: url })
  const wallet = {
    /** The invoices that the wallet was asked to pay. */
    asked: [] as string[],
    /** The outcome of the next payments. With `lost`, the wallet pays but reports an unknown outcome. */
    next: 'paid' as 'paid' | 'not paid' | 'lost' | 'unknown' | 'lies',
    async pay(...[bolt11, options]: Parameters<Wallet['pay']>): ReturnType<Wallet['pay']> {
      wallet.asked.push(bolt11)
      if (wallet.next === 'not paid') throw new WalletError('no route', 'not paid')
      if (wallet.next === 'unknown') throw new WalletError('no answer', 'unknown')
      if (wallet.next === 'lies') return { preimage: '00'.repeat(32) }
      const paid = await simulator.pay(bolt11, options)
      if (wallet.next === 'lost') throw new WalletError('no answer', 'unknown')
      return paid
    },
  }
  return wallet
}
