/**
 * Runs a batch of units as one transaction in two round trips: first all statements, then, if every unit met
 * its conditions, the commit. A unit that did not meet them runs again alone, so that only it fails.
 */
import { setTimeout as wait } from 'node:timers/promises'
import {
  type Answer,
  type Statement,
  StoreAway,
  StoreError,
  type Unit,
  UnitRefused,
} from '../db.ts'
import { byName, nameAt } from '../unit.ts'
import type { Connection, PipelineAnswer, Query, Result } from './connection.ts'
import { isConflict } from './errors.ts'
import type { Slot } from './sessions.ts'

export type Job = {
  unit: Unit
  /** The unit's statements in the order in which they run. */
  statements: Statement[]
  resolve: (answer: Answer) => void
  reject: (error: Error) => void
}

/** Nothing was committed, so a retry is safe. Retries end, because the unit's caller waits. */
const MAX_TRIES = 5
/** The longest random pause before a retry, so that two conflicting instances do not retry together. */
const CONFLICT_PAUSE_MS = 20

const BEGIN: Query = { text: 'begin', values: [] }
const COMMIT: Query = { text: 'commit', values: [] }
/** PostgreSQL flushes such a commit with the next flushed one, or within a second. */
const DEFERRED: Query = { text: 'set local synchronous_commit = off', values: [] }
const ROLLBACK: Query = { text: 'rollback', values: [] }

type Done = { answer: Answer } | { error: Error }
type Outcome =
  | { kind: 'committed'; done: Done[] }
  /** Rolled back, because of the unit at this place. */
  | { kind: 'failed'; at: number; error: Error }
  /** Rolled back, or never begun: another try may succeed. */
  | { kind: 'again'; why: 'conflict' | 'connection'; error: Error }
  /** Not tried again: there is no connection, or it is unknown whether the batch was committed. */
  | { kind: 'given up'; error: Error }

/** Settles every job. Jobs keep their order. */
export async function runBatch(slot: Slot, jobs: Job[]): Promise<void> {
  let from = 0
  /** Jobs in one transaction: fewer after a failure, twice as many after each success. */
  let size = jobs.length
  let tries = 0
  while (from < jobs.length) {
    const together = jobs.slice(from, from + size)
    const outcome = await attempt(slot, together)
    switch (outcome.kind) {
      case 'committed':
        for (const [i, job] of together.entries()) settle(job, outcome.done[i])
        from += together.length
        size *= 2
        tries = 0
        break
      case 'failed':
        if (together.length > 1) {
          // Next come the jobs before the failed one, then the failed job alone.
          size = Math.max(1, outcome.at)
          break
        }
        together[0]?.reject(outcome.error)
        from += 1
        tries = 0
        break
      case 'again':
        if (++tries >= MAX_TRIES) {
          for (const job of together) job.reject(outcome.error)
          from += together.length
          tries = 0
        } else if (outcome.why === 'conflict') {
          // A unit alone takes few locks, in the same order on every instance.
          size = 1
          await wait(Math.random() * CONFLICT_PAUSE_MS * tries)
        }
        break
      case 'given up':
        for (const job of together) job.reject(outcome.error)
        from += together.length
    }
  }
}

async function attempt(slot: Slot, jobs: Job[]): Promise<Outcome> {
  let connection: Connection
  try {
    connection = await slot.connection()
  } catch (error) {
    return { kind: 'given up', error: error as Error }
  }
  const answer = await connection.send([BEGIN, ...jobs.flatMap(({ statements }) => statements)])
  const outcome = read(jobs, answer)
  if (outcome.kind === 'again') {
    if (answer.failure?.isStale) slot.drop()
    else if (connection.isOpen()) await connection.send([ROLLBACK])
    return outcome
  }
  if (outcome.kind !== 'committed') {
    await connection.send([ROLLBACK])
    return outcome
  }
  const isFlushed = jobs.some(({ unit }) => unit.durability !== 'deferred')
  const { results, failure } = await connection.send(isFlushed ? [COMMIT] : [DEFERRED, COMMIT])
  const last = results.at(-1)
  // A warning says that a standby may not have it, because somebody has ended the wait for that.
  if (!failure && last?.tag === 'COMMIT' && last.warning === null) return outcome
  if (failure && isConflict(failure.code)) {
    return { kind: 'again', why: 'conflict', error: failure.error }
  }
  slot.drop()
  return {
    kind: 'given up',
    error: new StoreAway(
      last?.warning
        ? `PostgreSQL warned at the commit; the unit may have happened (${last.warning})`
        : 'PostgreSQL did not say whether it committed; the unit may have happened',
    ),
  }
}

/** The outcome of a batch before its commit. */
function read(jobs: Job[], { results, failure }: PipelineAnswer): Outcome {
  if (failure) {
    const { error, code, isLost, isStale } = failure
    if (isLost || isStale) return { kind: 'again', why: 'connection', error }
    if (isConflict(code)) return { kind: 'again', why: 'conflict', error }
    const { place, first } = unitOf(jobs, results.length)
    // If a condition was not met before the statement that failed, the refusal is the unit's outcome.
    const job = jobs[place]
    const refusal = job ? unmet(job, results.slice(first)) : null
    return { kind: 'failed', at: place, error: refusal ?? error }
  }
  const done: Done[] = []
  let at = 1
  for (const [place, job] of jobs.entries()) {
    const { unit, statements } = job
    const own = results.slice(at, at + statements.length)
    at += statements.length
    const error = refusalReason(job, own)
    if (error && own.some(hasChanged)) return { kind: 'failed', at: place, error }
    // A refused unit that changed nothing need not be undone, so the batch is committed with it.
    const rows = own.map((result) => result.rows)
    done.push(error ? { error } : { answer: byName(unit.statements, rows) })
  }
  return { kind: 'committed', done }
}

function refusalReason(job: Job, results: Result[]): Error | null {
  if (results.length < job.statements.length) {
    return new StoreError('PostgreSQL gave no answer to a statement')
  }
  return unmet(job, results)
}

/** The error of the first statement that failed or did not meet its condition. */
function unmet({ unit, statements }: Job, results: Result[]): Error | null {
  for (const [i, { count, error }] of results.entries()) {
    if (error) return error
    const expect = statements[i]?.expect
    if (expect !== undefined && count !== expect) {
      return new UnitRefused(nameAt(unit.statements, i))
    }
  }
  return null
}

const hasChanged = ({ tag, count }: Result): boolean => count > 0 && !tag.startsWith('SELECT')

/** The unit that the result at this index belongs to, and the index of its first result. BEGIN has index 0. */
function unitOf(jobs: Job[], result: number): { place: number; first: number } {
  let first = 1
  for (const [place, { statements }] of jobs.entries()) {
    if (result < first + statements.length) return { place, first }
    first += statements.length
  }
  return { place: 0, first: 1 }
}

function settle(job: Job, done: Done | undefined): void {
  if (done && 'answer' in done) job.resolve(done.answer)
  else job.reject(done?.error ?? new StoreError('PostgreSQL gave no answer to a unit'))
}
