/**
 * The Lightning network of a run: one node that makes signed invoices, and wallets that pay them. The node
 * answers late or not at all, reports settlements late, twice, in the wrong order or never, and may restart.
 * What it has promised stays true: an invoice is settled once, and a dead one is never settled.
 */
import { type Lightning, UnknownInvoice } from '../../../src/lightning/lightning.ts'
import { createInvoices, expired, type Invoices } from './invoices.ts'
import type { Random } from './random.ts'
import { world } from './world.ts'

export type LightningNetwork = {
  /** By payment hash. */
  invoices: Invoices['all']
  /** The port that a process has to the node. */
  connect(): Lightning
  pay: Invoices['pay']
  /** How often a call fails, from 0 to 1. Half of the failed calls are done nevertheless. */
  failing: number
  /** How often a call takes so long that the service gives it up. */
  stalling: number
  /** How often the node tells of a settlement at once. */
  telling: number
}

const PRIVATE_KEY = Buffer.from('e1'.repeat(32), 'hex')
const NODE_ID = '02'.padEnd(66, '7')

export function createLightningNetwork(): LightningNetwork {
  const { all: invoices, make, pay } = createInvoices(PRIVATE_KEY, tell)
  const listeners = new Set<(paymentHash: string) => void>()

  /** A call of a process to the node, with the node's time to answer. */
  async function call<T>(work: () => T): Promise<T> {
    const { scheduler } = world()
    const { random } = scheduler
    await scheduler.sleep(random.next() * longest(random))
    const isFailing = random.chance(network.failing)
    const result = !isFailing || random.chance(0.5) ? work() : undefined
    await scheduler.sleep(random.next() * 10)
    if (isFailing) throw new Error('the node did not answer')
    return result as T
  }

  /** Mostly quick. Now and then it takes longer than the service waits for it, and does its work nevertheless. */
  function longest(random: Random): number {
    const draw = random.next()
    if (draw < network.stalling) return 45_000
    return draw < 0.94 ? 30 : 3_000
  }

  /** Tells the listeners of a settlement: at once, later, twice, or not at all. */
  function tell(paymentHash: string): void {
    const { scheduler } = world()
    const { random } = scheduler
    if (!random.chance(network.telling)) return
    const times = random.chance(0.1) ? 2 : 1
    for (let i = 0; i < times; i++) {
      const ms = random.next() * (random.chance(0.1) ? 20_000 : 200)
      scheduler.after(
        ms,
        () => {
          for (const listener of [...listeners]) listener(paymentHash)
        },
        null,
      )
    }
  }

  const network: LightningNetwork = {
    invoices,
    failing: 0,
    stalling: 0,
    telling: 0.9,
    connect() {
      return {
        info: () => call(() => ({ network: 'regtest', synced: true, nodeId: NODE_ID })),
        createInvoice: ({ memo, ...request }) =>
          call(() => make({ ...request, description: memo })),
        lookupInvoice: (paymentHash) =>
          call(() => {
            const invoice = invoices.get(paymentHash)
            if (!invoice) return null
            return expired(invoice).state
          }).then((state) => {
            if (state === null) throw new UnknownInvoice()
            if (state === 'dead') return { state, isFinal: true }
            return { state: state === 'settled' ? 'settled' : 'open' }
          }),
        watch(onSettled, signal) {
          const { scheduler } = world()
          const owner = scheduler.owner()
          return new Promise((resolve, reject) => {
            if (signal.aborted) return resolve()
            const listener = (paymentHash: string): void => {
              if (owner?.isDead) listeners.delete(listener)
              else scheduler.after(0, () => onSettled(paymentHash), owner)
            }
            listeners.add(listener)
            const stop = (): void => {
              listeners.delete(listener)
              resolve()
            }
            signal.addEventListener('abort', stop, { once: true })
            if (scheduler.random.chance(0.3)) {
              scheduler.after(scheduler.random.next() * 30_000, () => {
                listeners.delete(listener)
                reject(new Error('the stream of the node ended'))
              })
            }
          })
        },
      }
    },
    pay,
  }
  return network
}
