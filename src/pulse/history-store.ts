/**
 * The history of monitors in the store. The newest pings stand in the monitor's row; the rest is added here, in the
 * unit that changes the row, so that nothing is lost or doubled.
 */
import { type Db, limitedTo, type Statement } from '../db/db.ts'
import type { EndedRun } from './runs.ts'
import type { Lateness } from './state.ts'

/** How many pings a chunk has: as many as the monitor's row holds. */
export const CHUNK_PINGS = 100
/** Rows of one table that a unit deletes: more would hold up the pings of others. */
const DELETED_TOGETHER = 1_000
const GONE_TOGETHER = 200
/** Times that one query looks up. Always as many, so that the store prepares one statement. */
const LOOKED_UP_TOGETHER = 32

/** A time in which a monitor was late. It lasts while `endedAt` is null. */
export type LateSpell = {
  beganAt: number
  cause: Lateness['cause']
  endedAt: number | null
  endedBy: 'ping' | 'settings' | null
  /** How long the spells before it lasted together. */
  lateBeforeMs: number
}

/** What a turn adds to the history. */
export type HistoryRows = {
  spells: LateSpell[]
  /** Times that leave the monitor's row, as its column has them. */
  chunk: { position: number; times: string } | null
  run: { pingNumber: number; ended: EndedRun } | null
}

export type RunRow = {
  ping_number: number
  rid: string | null
  started_at: number | null
  has_failed: number
  exit_code: number | null
}
export type SpellRow = { began_at: number; ended_at: number; cause: Lateness['cause'] }
type EarlierSpell = { at: number } & Record<
  'began_at' | 'ended_at' | 'late_before_ms',
  number | null
>

export const storeHistory = (
  publicId: string,
  { spells, chunk, run }: HistoryRows,
): Statement[] => [
  ...spells.map((spell) => storeSpell(publicId, spell)),
  ...(chunk === null ? [] : [insertChunk(publicId, chunk)]),
  ...(run === null ? [] : [insertRun(publicId, run)]),
]

const storeSpell = (publicId: string, spell: LateSpell): Statement => ({
  text: `insert into pulse_late_spell
    (public_id, began_at, cause, ended_at, ended_by, late_before_ms) values ($1, $2, $3, $4, $5, $6)
    on conflict (public_id, began_at) do update
    set ended_at = excluded.ended_at, ended_by = excluded.ended_by`,
  values: [publicId, spell.beganAt, spell.cause, spell.endedAt, spell.endedBy, spell.lateBeforeMs],
})

const insertChunk = (
  publicId: string,
  { position, times }: NonNullable<HistoryRows['chunk']>,
): Statement => ({
  text: 'insert into pulse_ping_chunk (public_id, position, times) values ($1, $2, $3)',
  values: [publicId, position, times],
})

const insertRun = (
  publicId: string,
  { pingNumber, ended }: NonNullable<HistoryRows['run']>,
): Statement => ({
  text: `insert into pulse_run (public_id, ping_number, rid, started_at, has_failed, exit_code)
    values ($1, $2, $3, $4, $5, $6)`,
  values: [
    publicId,
    pingNumber,
    ended.rid,
    ended.startedAt,
    Number(ended.hasFailed),
    ended.exitCode,
  ],
})

/** Notes that the history of these monitors is to be deleted. For the unit that deletes the monitors. */
export const forgetHistory = (publicIds: readonly string[]): Statement[] =>
  publicIds.map((publicId) => ({
    text: 'insert into pulse_gone (public_id) values ($1) on conflict (public_id) do nothing',
    values: [publicId],
  }))

/** Deletes the history of a monitor that is gone, in small units. */
export async function deleteHistory(db: Db, publicId: string): Promise<void> {
  const some = (table: string, key: string): Statement => ({
    text: `delete from ${table} where public_id = $1 and ${key} in (
      select ${key} from ${table} where public_id = $1 order by ${key} limit ${DELETED_TOGETHER})
      returning ${key}`,
    values: [publicId],
  })
  for (;;) {
    const { chunks, runs, spells } = await db.write({
      lockKey: publicId,
      statements: {
        chunks: some('pulse_ping_chunk', 'position'),
        runs: some('pulse_run', 'ping_number'),
        spells: some('pulse_late_spell', 'began_at'),
      },
    })
    if (Math.max(chunks.length, runs.length, spells.length) < DELETED_TOGETHER) break
  }
  const gone: Statement = {
    text: 'delete from pulse_gone where public_id = $1',
    values: [publicId],
  }
  await db.write({ lockKey: publicId, statements: { gone } })
}

/** Deletes what is left of monitors that are gone. */
export async function deleteHistories(db: Db): Promise<void> {
  for (;;) {
    const gone = await db.read<{ public_id: string }>(
      `select public_id from pulse_gone limit ${GONE_TOGETHER}`,
    )
    for (const { public_id } of gone) await deleteHistory(db, public_id)
    if (gone.length < GONE_TOGETHER) return
  }
}

export function createHistoryStore(db: Pick<Db, 'read'>) {
  const lookUp = (publicId: string, times: readonly number[]): Promise<EarlierSpell[]> =>
    db.read<EarlierSpell>(LATE_UNTIL, publicId, ...times)

  return {
    /** The times of these chunks, from the first to the last position. */
    chunks: (publicId: string, { from, to }: { from: number; to: number }) =>
      db.read<{ position: number; times: string }>(
        'select position, times from pulse_ping_chunk where public_id = $1 and position between $2 and $3',
        ...[publicId, from, to],
      ),

    /** The runs that these pings ended. */
    runs: (publicId: string, { from, to }: { from: number; to: number }) =>
      db.read<RunRow>(
        `select ping_number, rid, started_at, has_failed, exit_code from pulse_run
        where public_id = $1 and ping_number between $2 and $3`,
        ...[publicId, from, to],
      ),

    /** The newest spells that have ended, and began before a time. */
    spells: (publicId: string, { before, most }: { before: number; most: number }) =>
      db.read<SpellRow>(
        `select began_at, ended_at, cause from pulse_late_spell
        where public_id = $1 and began_at < $2 and ended_at is not null
        order by began_at desc ${limitedTo(3)}`,
        ...[publicId, before, most],
      ),

    /** How long a monitor had been late until each of these times, in spells that have ended since. */
    async lateUntil(publicId: string, times: readonly number[]): Promise<Map<number, number>> {
      const reads: Promise<EarlierSpell[]>[] = []
      for (let i = 0; i < times.length; i += LOOKED_UP_TOGETHER) {
        const some = times.slice(i, i + LOOKED_UP_TOGETHER)
        const last = some.at(-1) ?? 0
        reads.push(
          lookUp(publicId, [
            ...some,
            ...Array<number>(LOOKED_UP_TOGETHER - some.length).fill(last),
          ]),
        )
      }
      const found = (await Promise.all(reads)).flat()
      return new Map(found.map((spell) => [Number(spell.at), lateIn(spell)]))
    },
  }
}

const lateIn = ({ at, began_at, ended_at, late_before_ms }: EarlierSpell): number =>
  began_at === null || ended_at === null
    ? 0
    : Number(late_before_ms) + Math.min(at, ended_at) - began_at

const LATE_UNTIL = `select asked.column1 as at, spell.began_at, spell.ended_at, spell.late_before_ms
  from (values ${Array.from({ length: LOOKED_UP_TOGETHER }, (_, i) => `(cast($${i + 2} as bigint))`).join(', ')}) asked
  left join pulse_late_spell spell on spell.public_id = $1 and spell.began_at = (
    select earlier.began_at from pulse_late_spell earlier
    where earlier.public_id = $1 and earlier.began_at <= asked.column1 and earlier.ended_at is not null
    order by earlier.began_at desc limit 1)`
