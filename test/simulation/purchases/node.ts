/**
 * The nodes behind the wallets. They lie about nothing, but store late, try again, forget, dawdle and go away, each as
 * its kind does (docs/sdk.md).
 */
import { NodeRefused } from '../../../src/client/wallets/node-fetch.ts'
import type { Node, Payment } from '../../../src/client/wallets/paying.ts'
import type { Scheduler } from '../world/scheduler.ts'
import { callOver, type Weather } from './network.ts'
import { rightClock, type Seller } from './seller.ts'

export const KINDS = ['lnd', 'cln', 'phoenixd', 'nwc'] as const
/** How long CLN begins new tries: the `retry_for` of our wallet. */
const RETRY_MS = 50_000

export type Kind = (typeof KINDS)[number]

/** A payment that has left a wallet. */
export type Spent = { bolt11: string; amountMsat: number; feeMsat: number; key: string; at: number }

type Attempt = {
  state: 'trying' | 'between' | 'paid' | 'failed'
  preimage: string
  feeMsat: number
}

export function createNode(
  scheduler: Scheduler,
  {
    kind,
    name,
    weather,
    sellers,
  }: { kind: Kind; name: string; weather: Weather; sellers: Seller[] },
) {
  const { random } = scheduler
  const attempts = new Map<string, Attempt>()
  const spent: Spent[] = []
  /** When each invoice was handed over last, by the right clock. */
  const handed = new Map<string, number>()

  /** A try takes seconds; a payment that a node on the way holds takes minutes, or until long after its invoice. */
  function tryMs(): number {
    if (random.chance(weather.stuckRate)) return random.int(10 * 60_000, 45 * 60_000)
    return random.chance(0.2) ? random.int(60_000, 400_000) : random.int(100, 9_000)
  }

  function begin(hash: string, bolt11: string, maxFeeMsat: number): Attempt {
    const attempt: Attempt = { state: 'trying', preimage: '', feeMsat: 0 }
    attempts.set(hash, attempt)
    const begunAt = scheduler.elapsed()
    let tries = kind === 'cln' ? random.int(1, 4) : 1
    const isDoomed = random.chance(0.25)
    const go = (): void => {
      attempt.state = 'trying'
      scheduler.after(tryMs(), end, null)
    }
    const end = (): void => {
      tries--
      const sold = isDoomed || tries > 0 ? null : take(bolt11)
      if (sold) {
        attempt.feeMsat = random.int(0, maxFeeMsat + 1)
        attempt.preimage = sold.preimage
        attempt.state = 'paid'
        const { key, amountMsat } = sold
        spent.push({ bolt11, amountMsat, feeMsat: attempt.feeMsat, key, at: scheduler.elapsed() })
      } else if (tries > 0 && scheduler.elapsed() - begunAt < RETRY_MS) {
        attempt.state = 'between'
        scheduler.after(random.int(500, 15_000), go, null)
      } else {
        attempt.state = 'failed'
      }
    }
    go()
    return attempt
  }

  function take(bolt11: string) {
    for (const seller of sellers) {
      const sold = seller.accepts(bolt11)
      if (sold) return sold
    }
    return null
  }

  /** What the node says of a payment. */
  function said(attempt: Attempt | undefined): Payment {
    if (!attempt) return { state: 'none' }
    const { state, preimage, feeMsat } = attempt
    if (state === 'paid') return { state, preimage, feeMsat }
    // A wallet over Nostr knows nothing of a payment before it is complete.
    if (kind === 'nwc') return { state: 'none' }
    // CLN's listpays calls a payment failed while `pay` is about to try again.
    if (state === 'failed' || state === 'between') return { state: 'failed', reason: 'no route' }
    return { state: 'pending' }
  }

  async function pay(hash: string, bolt11: string, maxFeeMsat: number): Promise<Payment> {
    handed.set(bolt11, scheduler.wallNow(rightClock))
    // A busy node looks at a request, and stores its payment, some time after it came.
    if (random.chance(weather.busyRate)) await scheduler.sleep(random.int(1_000, 90_000))
    const before = attempts.get(hash)
    if (before && before.state !== 'failed') {
      return { state: 'failed', reason: before.state === 'paid' ? 'already paid' : 'in flight' }
    }
    const attempt = begin(hash, bolt11, maxFeeMsat)
    while (attempt.state !== 'paid' && attempt.state !== 'failed') await scheduler.sleep(100)
    return attempt.state === 'paid' ? said(attempt) : { state: 'failed', reason: 'no route' }
  }

  /** A node of its own for each process, with the connection that the process has. */
  const connect = (): Node => ({
    name,
    refusesRepeats: kind !== 'nwc',
    ...(kind === 'cln' ? { triesAgain: true } : {}),
    id: name,
    lookup: ({ paymentHash }, signal) =>
      callOver(scheduler, weather, { work: () => said(attempts.get(paymentHash)), signal }),
    async send({ paymentHash, bolt11 }, maxFeeMsat, signal) {
      if (signal.aborted) throw new NodeRefused('too late')
      return callOver(scheduler, weather, {
        work: () => pay(paymentHash, bolt11, maxFeeMsat),
        signal,
      })
    },
  })

  /** Whether it has paid this, or may yet. */
  function mayPay(paymentHash: string): boolean {
    const attempt = attempts.get(paymentHash)
    return attempt !== undefined && attempt.state !== 'failed'
  }

  return { name, kind, connect, spent, handed, mayPay }
}
