/**
 * The Lightning network of a run: one node that makes signed invoices, and wallets that pay them. The node
 * answers late or not at all, reports settlements late, twice, in the wrong order or never, and may restart.
 * What it has promised stays true: an invoice is settled once, and a dead one is never settled.
 */
import { type Lightning, UnknownInvoice } from '../../../src/lightning/lightning.ts'
import type { Random } from '../../support/random.ts'
import { createInvoices } from './invoices.ts'
import { world } from './world.ts'

export type LightningNetwork = ReturnType<typeof createLightningNetwork>

const PRIVATE_KEY = Buffer.from('e1'.repeat(32), 'hex')
/** How old an answer may be. */
const LAG_MS = 10_000
const NODE_ID = '02'.padEnd(66, '7')

export function createLightningNetwork() {
  const { all: invoices, make, pay, expired, ...settings } = createInvoices(PRIVATE_KEY, tell)
  const listeners = new Set<(paymentHash: string) => void>()
  /** Ends the subscriptions of the processes. */
  const endings = new Set<() => void>()
  const settledAt = new Map<string, number>()
  let awayUntil = 0

  /** A call of a process to the node, with the node's time to answer. */
  async function call<T>(work: () => T): Promise<T> {
    const { scheduler } = world()
    const { random } = scheduler
    await scheduler.sleep(random.next() * longest(random))
    if (scheduler.elapsed() < awayUntil) throw new Error('the node is away')
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
    settledAt.set(paymentHash, scheduler.elapsed())
    if (scheduler.elapsed() < awayUntil || !random.chance(network.telling)) return
    const times = random.chance(0.1) ? 2 : 1
    for (let i = 0; i < times; i++) {
      const ms = random.next() * (random.chance(0.1) ? 20_000 : network.tellingWithinMs)
      scheduler.after(
        ms,
        () => {
          for (const listener of [...listeners]) listener(paymentHash)
        },
        null,
      )
    }
  }

  /** Whether an answer is of the time before the settlement. */
  function isUnseen(paymentHash: string): boolean {
    const { scheduler } = world()
    const at = settledAt.get(paymentHash)
    if (at === undefined || !scheduler.random.chance(network.lagging)) return false
    return scheduler.elapsed() - at < LAG_MS
  }

  function restart(awayMs: number): void {
    awayUntil = world().scheduler.elapsed() + awayMs
    for (const end of [...endings]) end()
  }

  const network = {
    /** By payment hash. */
    invoices,
    /** How often a call fails, from 0 to 1. Half of the failed calls are done nevertheless. */
    failing: 0,
    /** How often a call takes so long that the service gives it up. */
    stalling: 0,
    /** How often the node tells of a settlement at once. */
    telling: 0.9,
    /** How soon it tells of one at once. */
    tellingWithinMs: 200,
    /** How often a look-up finds no invoice, although there is one. */
    forgetting: 0,
    /** How often a look-up does not see a settlement of the last seconds. */
    lagging: 0,
    /** The port that a process has to the node. */
    connect(): Lightning {
      return {
        info: () => call(() => ({ network: 'regtest', synced: true, nodeId: NODE_ID })),
        createInvoice: ({ memo, ...request }) =>
          call(() => ({ network: 'regtest', ...make({ ...request, description: memo }) })),
        lookupInvoice: (paymentHash) =>
          call(() => {
            const { random } = world().scheduler
            const invoice = invoices.get(paymentHash)
            if (!invoice || random.chance(network.forgetting)) return null
            return isUnseen(paymentHash) ? 'open' : expired(invoice).state
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
            const forget = (): void => {
              listeners.delete(listener)
              endings.delete(end)
            }
            const end = (): void =>
              void scheduler.after(
                0,
                () => {
                  forget()
                  reject(new Error('the stream of the node ended'))
                },
                owner,
              )
            const stop = (): void => {
              forget()
              resolve()
            }
            if (scheduler.elapsed() < awayUntil) return end()
            endings.add(end)
            signal.addEventListener('abort', stop, { once: true })
            if (scheduler.random.chance(0.3)) {
              scheduler.after(scheduler.random.next() * 30_000, end)
            }
          })
        },
      }
    },
    pay,
    ...settings,
    /** Ends all subscriptions, and answers no call for so long. */
    restart,
  }
  return network
}
