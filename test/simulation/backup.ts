/** A backup that the operator restores in the middle of a run, and what docs/run/backup.md says is lost by that. */
import { contestRestored } from '../../src/payment/operator.ts'
import type { Run } from './run-context.ts'

/** What clients were told before a backup began: it has all of that. */
type Noted = {
  stored: Map<string, ReadonlySet<string>>
  reads: Map<string, { asked: number; answered: number }>
  pinged: Map<string, { accepted: number; sent: number }>
}

export type Backup = { image: Uint8Array; noted: Noted }

export function takeBackup({ world, ledger }: Run): Backup {
  const { stored, reads, pinged } = ledger
  const copies = <T, Copy>(of: Map<string, T>, copy: (one: T) => Copy): Map<string, Copy> =>
    new Map([...of].map(([publicId, one]) => [publicId, copy(one)]))
  return {
    image: world.disk.backup(),
    noted: {
      stored: copies(stored, ({ accepted }) => new Set(accepted)),
      reads: copies(reads, (each) => ({ ...each })),
      pinged: copies(pinged, (each) => ({ ...each })),
    },
  }
}

/** Longer than any call to the store whose sender is dead by then. */
const QUIET_MS = 2_000

/** Puts the store back. No process may run. */
export async function restoreBackup(run: Run, { image, noted }: Backup): Promise<void> {
  const { world, ledger } = run
  const { disk, scheduler } = world
  run.operator.isRestoring = true
  do await scheduler.sleep(QUIET_MS)
  while (run.operator.isMending)
  disk.restore(image)
  // As `mayfly restore` does.
  disk.read(contestRestored.text)
  run.operator.isRestoring = false
  ledger.restores++
  const states = new Map(
    disk
      .read(
        `select payment_hash, case when state = 'settled' and delivered_at is null then 'uncollected'
           else state end as state
         from purchase_order where payment_hash is not null`,
      )
      .map(({ payment_hash, state }) => [String(payment_hash), String(state)]),
  )
  const sold = new Set(
    disk
      .read(
        `select public_id from catch_inbox union all select public_id from pulse_monitor
         union all select public_id from whisper`,
      )
      .map(({ public_id }) => String(public_id)),
  )
  for (const paymentHash of world.node.invoices.keys()) {
    if (!states.has(paymentHash)) ledger.lost.add(paymentHash)
  }
  for (const [paymentHash, bodies] of [...ledger.delivered]) {
    const state = states.get(paymentHash)
    if (state === 'settled') continue
    if (state === 'uncollected') {
      ledger.uncollected.add(paymentHash)
      continue
    }
    for (const body of bodies) {
      const { publicId } = (JSON.parse(body) as { resource?: { publicId: string } }).resource ?? {}
      if (publicId !== undefined && !sold.has(publicId)) ledger.gone.add(publicId)
    }
    ledger.delivered.delete(paymentHash)
    ledger.extended.delete(paymentHash)
    const comeBack = run.buyers.get(paymentHash)
    if (comeBack) run.errands.push(comeBack())
  }
  for (const [publicId, { accepted }] of ledger.stored) {
    accepted.clear()
    for (const body of noted.stored.get(publicId) ?? []) accepted.add(body)
  }
  for (const [publicId, reads] of ledger.reads) {
    Object.assign(reads, noted.reads.get(publicId) ?? { asked: 0, answered: 0 })
  }
  for (const [publicId, pings] of ledger.pinged) {
    Object.assign(pings, noted.pinged.get(publicId) ?? { accepted: 0, sent: 0 })
  }
}
