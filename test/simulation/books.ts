/** The end of a run: the store, the node and what clients were told must agree. */
import type { Db } from '../../src/db/db.ts'
import { audit, nothingTold } from '../support/accounting.ts'
import type { Ledger } from './ledger.ts'
import type { Run } from './run-context.ts'
import type { Disk } from './world/disk.ts'

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
  const told = { ...nothingTold(), destroyed: ledger.destroyed }
  const owners = new Map<string, string>()
  for (const [paymentHash, bodies] of ledger.delivered) {
    const [order] = disk.read(
      'select order_id from purchase_order where payment_hash = $1',
      paymentHash,
    )
    told.delivered.set(String(order?.order_id), bodies)
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
  for (const [publicId, { accepted, sent }] of ledger.stored) {
    told.stored.set(publicId, accepted)
    const rows = disk.read('select body from catch_event where public_id = $1', publicId)
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
  for (const what of await audit({ db, settled, granted, told }))
    ledger.break('the books balance', what)
}

/** The end of what was extended is that of its sale, and the time of its plan for each payment. */
function balanceExtensions(disk: Disk, ledger: Ledger): void {
  for (const [publicId, soldUntil] of ledger.sold) {
    const [row] = disk.read(
      `select expires_at from catch_inbox where public_id = $1 and destroyed_at is null
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
    if (times !== told.length || ends.toSorted((a, b) => a - b).join() !== expected.join()) {
      ledger.break('extended once', `${publicId}: ${told.length} paid, told ${ends}, has ${times}`)
    }
  }
}
