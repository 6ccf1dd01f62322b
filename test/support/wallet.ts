/** A wallet on the simulator that counts, and that a test may make fail. */
import { type Wallet, WalletError } from '../../src/client/index.ts'
import { simulatorWallet } from '../../src/client/wallets/simulator.ts'

export type TestWallet = Wallet & {
  /** The invoices that it was asked to pay. */
  asked: string[]
  /** What the next payments meet; `lost` pays and does not know. */
  next: 'paid' | 'not paid' | 'lost' | 'unknown' | 'lies'
}

export function testWallet({ url }: { url: string }): TestWallet {
  const simulator = simulatorWallet({ baseUrl: url })
  const wallet: TestWallet = {
    asked: [],
    next: 'paid',
    async pay(bolt11, options) {
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
