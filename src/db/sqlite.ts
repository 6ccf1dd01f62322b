/** The embedded store: one SQLite file, a writer thread with group commit, and a reader thread. */
import { mkdirSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Db, type Row, type Statement, StoreError, StoreUnusable, UnitRefused } from './db.ts'
import type {
  Query,
  QueryResult,
  Reply,
  Request,
  UnitResult,
  WorkerOptions,
} from './sqlite-worker.ts'

/** A batch stays short enough that the first unit in it is not kept waiting by the last. */
const MAX_UNITS_IN_BATCH = 512
const MAX_QUERIES_IN_BATCH = 64

type Job<Ask, Answer> = {
  ask: Ask
  resolve: (answer: Answer) => void
  reject: (error: Error) => void
}

/**
 * Opens the file, made on the way if it is not there, readable by its owner alone.
 * @throws StoreUnusable with a sentence that says what to do.
 */
export async function openSqlite(file: string): Promise<Db> {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new StoreUnusable(`The folder of ${file} cannot be made: ${reason(error)}.`)
  }
  const writer = await startWorker({ file, role: 'writer' })
  await chmod(file, 0o600).catch(() => undefined)
  const reader = await startWorker({ file, role: 'reader' })
  const units = batcher<Statement[], Row[][]>(MAX_UNITS_IN_BATCH, async (batch) => {
    const reply = await writer.ask({ kind: 'units', units: batch })
    return reply.kind === 'units' ? reply.results.map(unitRows) : []
  })
  const queries = batcher<Query, Row[]>(MAX_QUERIES_IN_BATCH, async (batch) => {
    const reply = await reader.ask({ kind: 'queries', queries: batch })
    return reply.kind === 'queries' ? reply.results.map(queryRows) : []
  })

  async function run(text: string, values: Statement['values']): Promise<Row[]> {
    const reply = await writer.ask({ kind: 'run', text, values })
    if (reply.kind !== 'run') throw new StoreError('the store answered another question')
    const rows = queryRows(reply.result)
    if (rows instanceof Error) throw rows
    return rows
  }

  return {
    read: <T extends Row>(text: string, ...values: Statement['values']) =>
      queries.add({ text, values }) as Promise<T[]>,
    write: (unit) => units.add(unit),
    tx: (work) =>
      units.alone(async () => {
        await run('begin immediate', [])
        try {
          const result = await work({
            run: <T extends Row>(text: string, ...values: Statement['values']) =>
              run(text, values) as Promise<T[]>,
          })
          await run('commit', [])
          return result
        } catch (error) {
          await run('rollback', []).catch(() => undefined)
          throw error
        }
      }),
    close: async () => {
      await Promise.all([units.idle(), queries.idle()])
      await reader.stop()
      await writer.stop()
    },
  }
}

function unitRows(result: UnitResult): Row[][] | Error {
  if ('rows' in result) return result.rows
  return 'refused' in result ? new UnitRefused(result.refused) : new StoreError(result.error)
}

function queryRows(result: QueryResult): Row[] | Error {
  return 'rows' in result ? result.rows : new StoreError(result.error)
}

/** Sends what has gathered while the last batch was under way: this is the group commit. */
function batcher<Ask, Answer>(
  most: number,
  send: (batch: Ask[]) => Promise<(Answer | Error)[]>,
): {
  add(ask: Ask): Promise<Answer>
  alone<T>(work: () => Promise<T>): Promise<T>
  idle(): Promise<void>
} {
  const waiting: Job<Ask, Answer>[] = []
  let isBusy = false
  let wakeups: (() => void)[] = []

  async function pump(): Promise<void> {
    if (isBusy) return
    isBusy = true
    // Lets everything that this turn of the event loop still brings join the batch.
    await null
    while (waiting.length > 0) {
      const batch = waiting.splice(0, most)
      try {
        const answers = await send(batch.map((job) => job.ask))
        for (const [i, job] of batch.entries()) settle(job, answers[i])
      } catch (error) {
        const failure = error instanceof Error ? error : new StoreError(String(error))
        for (const job of batch) job.reject(failure)
      }
    }
    isBusy = false
    for (const wake of wakeups.splice(0)) wake()
  }

  async function whenFree(): Promise<void> {
    while (isBusy) await new Promise<void>((wake) => wakeups.push(wake))
  }

  return {
    add: (ask) =>
      new Promise((resolve, reject) => {
        waiting.push({ ask, resolve, reject })
        void pump()
      }),
    async alone(work) {
      await whenFree()
      isBusy = true
      try {
        return await work()
      } finally {
        isBusy = false
        const woken = wakeups
        wakeups = []
        for (const wake of woken) wake()
        void pump()
      }
    },
    async idle() {
      while (isBusy || waiting.length > 0) {
        void pump()
        await whenFree()
      }
    },
  }
}

function settle<Ask, Answer>(job: Job<Ask, Answer>, answer: Answer | Error | undefined): void {
  if (answer instanceof Error) job.reject(answer)
  else if (answer === undefined) job.reject(new StoreError('the store gave no answer'))
  else job.resolve(answer)
}

type Thread = { ask(request: Request): Promise<Reply>; stop(): Promise<void> }

function startWorker(options: WorkerOptions): Promise<Thread> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const worker = new Worker(new URL(`./sqlite-worker.${extension}`, import.meta.url), {
    workerData: options,
  })
  return new Promise((resolve, reject) => {
    let pending: { resolve: (reply: Reply) => void; reject: (error: Error) => void } | null = null
    let failure: Error | null = null

    const fail = (error: Error): void => {
      failure ??= new StoreError(`the store's thread ended: ${error.message}`)
      pending?.reject(failure)
      pending = null
    }
    worker.on('error', fail)
    worker.on('exit', () => fail(new Error('it exited')))
    worker.on('message', (reply: Reply) => {
      if (reply.kind === 'opened') return resolve({ ask, stop })
      if (reply.kind === 'unusable') return reject(unusable(options.file, reply))
      const asker = pending
      pending = null
      asker?.resolve(reply)
    })

    function ask(request: Request): Promise<Reply> {
      return new Promise((onReply, onError) => {
        if (failure) return onError(failure)
        pending = { resolve: onReply, reject: onError }
        worker.postMessage(request)
      })
    }

    async function stop(): Promise<void> {
      await ask({ kind: 'close' })
      await worker.terminate()
    }
  })
}

/** SQLite's result codes (sqlite.org/rescode.html) as sentences for the operator. */
function unusable(
  file: string,
  { code, message }: { code: string; message: string },
): StoreUnusable {
  switch (code === 'CORRUPT' ? 11 : Number(code) & 0xff) {
    case 8:
      return new StoreUnusable(`The database ${file} is read-only. Make it writable for this user.`)
    case 10:
      return new StoreUnusable(`The database ${file} cannot be read or written: ${message}.`)
    case 11:
      return new StoreUnusable(
        `The database ${file} is damaged (${message}). Restore it from a backup; nothing was changed.`,
      )
    case 13:
      return new StoreUnusable(`There is no room on the disk of ${file}.`)
    case 14:
      return new StoreUnusable(
        `The database ${file} cannot be opened. Check that the path is right and writable.`,
      )
    case 26:
      return new StoreUnusable(
        `${file} is not an SQLite database. Choose another MAYFLY_DATABASE_URL.`,
      )
    default:
      return new StoreUnusable(`The database ${file} cannot be used: ${message}.`)
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
