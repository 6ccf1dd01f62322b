/** The end of a run: the store, the node and what clients were told must agree. */
import type { Db } from '../../src/db/db.ts'
import { audit, nothingTold } from '../support/accounting.ts'
import type { Run } from './run-context.ts'

export async function balance({ world, ledger }: Run): Promise<void> {
  const { disk, node } = world
  const db = {
    read: async (text: string, ...values: never[]) => disk.read(text, ...values),
  } as unknown as Db
  const told = nothingTold()
  const owners = new Map<string, string>()
  for (const [paymentHash, bodies] of ledger.delivered) {
    const [order] = disk.read(
      'select order_id from purchase_order where payment_hash = $1',
      paymentHash,
    )
    told.delivered.set(String(order?.order_id), bodies)
    for (const body of bodies) {
      const publicId = String(
        (JSON.parse(body) as { resource: { publicId: string } }).resource.publicId,
      )
      const other = owners.get(publicId) ?? paymentHash
      owners.set(publicId, paymentHash)
      if (other !== paymentHash)
        ledger.break('one delivery', `${publicId} was sold to two payments`)
    }
  }
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
  for (const what of await audit({ db, settled, told })) ledger.break('the books balance', what)
}
