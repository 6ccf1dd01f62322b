/**
 * What the operator does about payments: gives what a restored backup does not know to who has paid for it, and
 * delivers or refunds what could not be provisioned. With the commands of `mayfly order`, beside the service, and
 * sometimes with two of them at once.
 */
import type { Answer, Store } from '../../src/cli/operator/command.ts'
import {
  deliver,
  handOut,
  readName,
  refund,
  refundOfLost,
  restore,
} from '../../src/cli/operator/order-work.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { PlanId, Product } from '../../src/lib/product-names.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { type Config, readConfig } from '../../src/service/config.ts'
import type { Run } from './run-context.ts'
import type { SimulatedInvoice } from './world/invoices.ts'
import type { Process } from './world/world.ts'

type Command = (on: Store) => Promise<Answer>

const LOOKS_EVERY_MS = 10_000

/** Looks for what is owed until the end of the run. */
export async function mendPayments(run: Run): Promise<void> {
  const { disk, node, scheduler } = run.world
  const { random } = scheduler
  for (;;) {
    await scheduler.sleep(LOOKS_EVERY_MS * (0.5 + random.next()))
    if (run.operator.isRestoring) continue
    run.operator.isMending = true
    const owed = disk.read(
      `select payment_hash, product, restored_at from purchase_order
        where state = 'paid_unfulfilled'`,
    )
    for (const { payment_hash, product, restored_at } of owed) {
      // The bytes of a WHISPER go when its quote ends. What the operator puts back is owed until it is provisioned.
      const mayBeOwed = product === 'whisper' || restored_at !== null
      if (!mayBeOwed && !run.weather.disasters.includes('refusal')) {
        run.ledger.break('paid means delivered', `${payment_hash} is owed, and nothing was refused`)
      }
      await mend(run, String(payment_hash))
    }
    for (const invoice of run.ledger.restores > 0 ? node.invoices.values() : []) {
      if (invoice.state === 'settled' && stateOf(run, invoice) === null) await give(run, invoice)
    }
    run.operator.isMending = false
  }
}

/** An order that was paid and not provisioned. */
async function mend(run: Run, paymentHash: string): Promise<void> {
  const { random, sleep } = run.world.scheduler
  await sleep(random.next() * 5_000)
  const ref = readName(paymentHash)
  const delivering: Command = (on) => deliver(on, ref)
  const refunding: Command = (on) => refund(on, { ref, reason: 'simulated' })
  const tries = random.pick([
    ...[[delivering], [refunding], [delivering, delivering], [refunding, refunding]],
  ])
  await attempt(run, paymentHash, tries)
  await handOutRenamed(run, paymentHash)
}

/** A payment without an order in the store that was restored. */
async function give(run: Run, invoice: SimulatedInvoice): Promise<void> {
  const { world, ledger } = run
  const { random } = world.scheduler
  const { paymentHash } = invoice
  const [, product = '', plan = ''] = decodeInvoice(invoice.bolt11).description?.split(' ') ?? []
  const orderId = ledger.orderIds.get(paymentHash) ?? null
  const lost = {
    paymentHash,
    planId: plan as PlanId,
    preimage: null,
    product: product.toLowerCase() as Product,
  }
  const named: Command = (on) => restore(on, { ...lost, orderId })
  const unnamed: Command = (on) => restore(on, { ...lost, orderId: null })
  const refunding: Command = (on) =>
    refundOfLost(on, { lost: { ...lost, orderId: null }, reason: 'simulated' })
  if (lost.product === 'whisper') return attempt(run, paymentHash, [named, refunding])
  await attempt(run, paymentHash, random.chance(0.2) ? [named, refunding] : [named])
  // The id may belong to a new order of this buyer.
  if (stateOf(run, invoice) === null) await attempt(run, paymentHash, [unnamed])
  await handOutRenamed(run, paymentHash)
}

/** What was restored under another id than its buyer knows, whose polls do not find it. */
async function handOutRenamed(run: Run, paymentHash: string): Promise<void> {
  const { world, ledger } = run
  const orderId = ledger.orderIds.get(paymentHash) ?? null
  const [row] = world.disk.read(
    'select order_id, state from purchase_order where payment_hash = $1',
    paymentHash,
  )
  if (orderId === null || row?.state !== 'settled' || row.order_id === orderId) return
  const handing = await command(run, (on) => handOut(on, readName(paymentHash)))
  // The only copy may be lost on its way to the operator.
  if (handing.answer) ledger.handedOut.set(paymentHash, handing.answer.text.trim())
  else ledger.paidBack.add(paymentHash)
}

/** One command, or several at the same time, of which one has an effect at most. */
async function attempt(run: Run, paymentHash: string, commands: Command[]): Promise<void> {
  const { ledger } = run
  const done = await Promise.all(commands.map((each) => command(run, each)))
  const worked = done.filter(({ answer }) => answer !== null)
  ledger.note(`${paymentHash} is mended: ${done.map(({ says }) => says).join(', ')}`)
  if (worked.length > 1) {
    ledger.break('repaired or refunded', `${paymentHash}: ${done.map(({ says }) => says)}`)
  }
  // The store says it, because the answer to a refund can be lost.
  if (stateOf(run, { paymentHash }) === 'refunded') ledger.paidBack.add(paymentHash)
}

/** Runs a command in a process of its own. */
async function command(run: Run, work: Command): Promise<{ answer: Answer | null; says: string }> {
  const { world, settings } = run
  const process: Process = { name: 'operator', isDead: false, app: null, onDeath: new Set() }
  const config = { ...readConfig(settings.environment()), catalog: settings.catalog() }
  try {
    const answer = await world.scheduler.as(process, () =>
      work({ config: config as Config, db: world.disk.connect(process), clock: systemClock }),
    )
    return { answer, says: answer.text }
  } catch (error) {
    return { answer: null, says: String(error) }
  }
}

function stateOf(
  { world }: Run,
  { paymentHash }: Pick<SimulatedInvoice, 'paymentHash'>,
): string | null {
  const [row] = world.disk.read(
    'select state from purchase_order where payment_hash = $1',
    paymentHash,
  )
  return row ? String(row.state) : null
}
