/** The end of a run: the store, the node and what clients were told must agree. */
import type { Db } from '../../src/db/db.ts'
import { audit, nothingTold } from '../support/accounting.ts'
import type { Ledger } from './ledger.ts'
import type { Run } from './run-context.ts'
import { editionOf } from './settings.ts'
import type { Disk } from './world/disk.ts'
import type { World } from './world/world.ts'

/** Of the plan `spark`, of an inbox and of a monitor. */
const PLAN_MS = 24 * 60 * 60 * 1000

/** @param granted the credits that GATE's projects were given. */
export async function balance(
  { world, ledger }: Run,
  granted: Record<string, number> = {},
): Promise<void> {
  const { disk, node } = world
  const db = {
    read: async (text: string, ...values: never[]) => disk.read(text, ...values),
  } as unknown as Db
  for (const publicId of ledger.gone) {
    for (const told of [ledger.stored, ledger.reads, ledger.pinged, ledger.sold])
      told.delete(publicId)
  }
  const told = { ...nothingTold(), destroyed: ledger.destroyed }
  const owners = new Map<string, string>()
  for (const [paymentHash, bodies] of ledger.delivered) {
    const [order] = disk.read(
      'select order_id from purchase_order where payment_hash = $1',
      paymentHash,
    )
    if (!ledger.uncollected.has(paymentHash)) told.delivered.set(String(order?.order_id), bodies)
    for (const body of bodies) {
      const { resource } = JSON.parse(body) as { resource?: { publicId: string } }
      if (!resource) continue
      const { publicId } = resource
      const other = owners.get(publicId) ?? paymentHash
      owners.set(publicId, paymentHash)
      if (other !== paymentHash)
        ledger.break('one delivery', `${publicId} was sold to two payments`)
    }
  }
  balanceExtensions(world.disk, ledger)
  balanceEditions(world, ledger)
  for (const [publicId, { accepted, sent }] of ledger.stored) {
    told.stored.set(publicId, accepted)
    const rows = disk.read(
      'select body from catch_event where inbox = (select number from catch_inbox where public_id = $1)',
      publicId,
    )
    const kept = rows.map(({ body }) => new TextDecoder().decode(body as Uint8Array))
    const lost = [...accepted].filter((body) => !kept.includes(body))
    const foreign = kept.filter((body) => !sent.has(body))
    if (lost.length > 0) ledger.break('stored once', `${publicId} lost ${lost.join(', ')}`)
    if (new Set(kept).size !== kept.length)
      ledger.break('stored once', `${publicId} has an event twice`)
    if (foreign.length > 0) ledger.break('stored once', `${publicId} has what nobody sent`)
  }
  for (const [publicId, { sold, asked, answered }] of ledger.reads) {
    const [row] = disk.read('select reads_left from whisper where public_id = $1', publicId)
    const spent = sold - Number(row?.reads_left ?? 0)
    if (answered > spent || spent > asked) {
      ledger.break(
        'reads are counted',
        `${publicId}: ${asked} asked, ${answered} answered, ${spent} spent`,
      )
    }
  }
  for (const [publicId, { accepted, sent }] of ledger.pinged) {
    const [row] = disk.read(
      'select accepted_heartbeat_count as n from pulse_monitor where public_id = $1',
      publicId,
    )
    const counted = Number(row?.n ?? -1)
    if (counted < accepted || counted > sent) {
      ledger.break(
        'pings are counted',
        `${publicId}: ${sent} sent, ${accepted} accepted, ${counted} counted`,
      )
    }
  }
  const settled = new Set(
    [...node.invoices.values()]
      .filter(({ state }) => state === 'settled')
      .map(({ paymentHash }) => paymentHash),
  )
  for (const paymentHash of settled) {
    const [order] = disk.read(
      `select state from purchase_order where payment_hash = $1 and state in ('settled', 'refunded')`,
      paymentHash,
    )
    if (!order) ledger.break('a restore loses no payment', `${paymentHash} is paid for nothing`)
    if (order?.state === 'refunded') settled.delete(paymentHash)
  }
  for (const what of await audit({ db, settled, granted, told }))
    ledger.break('the books balance', what)
}

/** The end of what was extended is that of its sale, and the time of its plan for each payment. */
function balanceExtensions(disk: Disk, ledger: Ledger): void {
  for (const [publicId, soldUntil] of ledger.sold) {
    const [row] = disk.read(
      `select expires_at from catch_inbox join catch_inbox_use using (number) where public_id = $1 and destroyed_at is null
       union all select expires_at from pulse_monitor where public_id = $1`,
      publicId,
    )
    if (!row) continue
    const told = [...ledger.extended.values()].filter((each) => each.publicId === publicId)
    const times = (Number(row.expires_at) - Date.parse(soldUntil)) / PLAN_MS
    const ends = told.map(
      ({ expiresAt }) => (Date.parse(expiresAt) - Date.parse(soldUntil)) / PLAN_MS,
    )
    const expected = ends.map((_, at) => at + 1)
    const isTold = ledger.restores > 0 || ends.toSorted((a, b) => a - b).join() === expected.join()
    if (times !== told.length || !isTold) {
      ledger.break('extended once', `${publicId}: ${told.length} paid, told ${ends}, has ${times}`)
    }
  }
}

/** What was sold is of the edition of the plans whose price was paid, whatever has changed since the quote. */
function balanceEditions({ disk, node }: World, ledger: Ledger): void {
  const orders = disk.read(
    `select payment_hash, product, plan from purchase_order
     where state = 'settled' and plan_id = 'spark' and product in ('catch', 'pulse') and restored_at is null`,
  )
  for (const { payment_hash, product, plan } of orders) {
    const invoice = node.invoices.get(String(payment_hash))
    const sold = product as 'catch' | 'pulse'
    const { requestLimit, heartbeatLimit } = JSON.parse(String(plan)) as Record<string, number>
    const paidFor = editionOf.price(sold, (invoice?.amountMsat ?? 0) / 1000)
    const got = editionOf.limit(sold, Number(requestLimit ?? heartbeatLimit))
    if (paidFor !== got) {
      ledger.break('an open quote stands', `${payment_hash} paid for ${paidFor} and got ${got}`)
    }
  }
}
