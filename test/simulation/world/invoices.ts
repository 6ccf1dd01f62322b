/**
 * The invoices of one node, and the wallets that pay them. Wallets hold payments beyond the end of an invoice. What
 * was promised stays true: an invoice is settled once, and a dead one is never settled.
 */
import { createHash } from 'node:crypto'
import { encodeInvoice, type InvoiceFields } from '../../../src/protocol/bolt11-sign.ts'
import { createMachineClock, type MachineClock } from './clocks.ts'
import { world } from './world.ts'

export type SimulatedInvoice = {
  bolt11: string
  paymentHash: string
  preimage: string
  /** Null leaves it to the payer. */
  amountMsat: number | null
  expiresAt: number
  state: 'open' | 'held' | 'settled' | 'dead'
}

/** `failed`: a part of the payment did not arrive, so what was held went back. The wallet may pay again. */
export type Paid = { kind: 'paid'; preimage: string } | { kind: 'refused' } | { kind: 'failed' }

type Description = { description: string } | { descriptionHash: string }
export type NewInvoice = Pick<InvoiceFields, 'amountMsat' | 'expirySeconds'> &
  Partial<Pick<InvoiceFields, 'network' | 'timestamp'>> &
  Description & {
    /** In hex. Default: a new one. */
    preimage?: string
  }

export type Invoices = ReturnType<typeof createInvoices>

/** LND waits for the other parts of a payment for a minute. */
const HELD_IN_PART_MS = 60_000

/** @param onSettled is told of each settlement. */
export function createInvoices(
  privateKey: Uint8Array,
  onSettled: (paymentHash: string) => void = () => undefined,
) {
  const all = new Map<string, SimulatedInvoice>()
  const byBolt11 = new Map<string, SimulatedInvoice>()
  /** Of each invoice that is held or was. */
  const settlements = new Map<SimulatedInvoice, Promise<boolean>>()

  let partial = 0
  let togetherMs = 0
  /** In milliseconds. The clocks of wallets are off by as much as the node's, each for itself. */
  let clocksWithinMs = 0
  let clock: MachineClock = () => 0

  function expired(invoice: SimulatedInvoice): SimulatedInvoice {
    if (invoice.state === 'open' && invoice.expiresAt <= world().scheduler.wallNow(clock)) {
      invoice.state = 'dead'
    }
    return invoice
  }

  /** Whether a wallet takes an invoice for one that is over. */
  function isOverFor(wallet: MachineClock, { expiresAt }: SimulatedInvoice): boolean {
    return expiresAt <= world().scheduler.wallNow(wallet)
  }

  function untilNext(everyMs: number): number {
    return everyMs - (world().scheduler.elapsed() % everyMs)
  }

  return {
    /** By payment hash, oldest first. */
    all,
    /** The invoice as it is now. */
    expired,
    /** How far the clocks of the node and of wallets are off. */
    setClocks(withinMs: number): void {
      clocksWithinMs = withinMs
      clock = createMachineClock(world().scheduler.random, withinMs)
    },
    /** How often only a part of a payment arrives, from 0 to 1. */
    setPartial(often: number): void {
      partial = often
    },
    /** All payments settle at the next multiple of so many milliseconds. 0 gives each a time of its own. */
    setTogether(everyMs: number): void {
      togetherMs = everyMs
    },

    make({ preimage: known, timestamp: at, ...fields }: NewInvoice): SimulatedInvoice {
      const { scheduler } = world()
      const preimage = known ? Buffer.from(known, 'hex') : scheduler.random.bytes(32)
      const paymentHash = createHash('sha256').update(preimage).digest('hex')
      const timestamp = at ?? Math.floor(scheduler.wallNow(clock) / 1000)
      const paymentSecret = Buffer.from(scheduler.random.bytes(32))
      const bolt11 = encodeInvoice(
        { network: 'regtest', ...fields, timestamp, paymentHash, paymentSecret },
        privateKey,
      )
      const invoice: SimulatedInvoice = {
        bolt11,
        paymentHash,
        preimage: Buffer.from(preimage).toString('hex'),
        amountMsat: fields.amountMsat,
        expiresAt: (timestamp + fields.expirySeconds) * 1000,
        state: 'open',
      }
      all.set(paymentHash, invoice)
      byBolt11.set(bolt11, invoice)
      return invoice
    },

    /** Pays an invoice, some time from now. A wallet that asks twice gets the same preimage and pays once. */
    async pay(bolt11: string): Promise<Paid> {
      const { scheduler } = world()
      const { random } = scheduler
      await scheduler.sleep(random.next() * 500)
      const invoice = byBolt11.get(bolt11)
      const wallet = createMachineClock(random, clocksWithinMs)
      if (!invoice || isOverFor(wallet, invoice)) return { kind: 'refused' }
      if (expired(invoice).state === 'dead') return { kind: 'refused' }
      if (invoice.state === 'open') {
        // The payment has arrived and is held. From here on it is settled, also after the expiry.
        invoice.state = 'held'
        // Soon, or much later, or together with what else waits for the same second.
        const kind = random.next()
        const settleMs =
          togetherMs > 0 || kind < 0.3
            ? untilNext(togetherMs || 1_000)
            : random.next() * (kind < 0.4 ? 15_000 : 100)
        const isPartial = random.chance(partial)
        const settled = new Promise<boolean>((resolve) => {
          const settle = (): void => {
            invoice.state = 'settled'
            onSettled(invoice.paymentHash)
            resolve(true)
          }
          const giveBack = (): void => {
            invoice.state = 'open'
            resolve(false)
          }
          if (isPartial) scheduler.after(random.next() * HELD_IN_PART_MS, giveBack, null)
          else scheduler.after(settleMs, settle, null)
        })
        settlements.set(invoice, settled)
      }
      if (!(await settlements.get(invoice))) return { kind: 'failed' }
      return { kind: 'paid', preimage: invoice.preimage }
    },
  }
}
