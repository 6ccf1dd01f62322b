/**
 * A thread that has the file of a store open. It is asked for units and queries, and answers in their order. Threads of
 * closed stores are used again: to start one takes longer than to open a file in an idle one.
 */
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import {
  type Answer,
  type Query,
  type Row,
  StoreAway,
  StoreError,
  type Unit,
  UnitRefused,
  ValueRefused,
} from '../db.ts'
import { byName, inARow, nameAt } from '../unit.ts'
import {
  createPacker,
  type Failure,
  type NamedMap,
  type QueryResult,
  type Reply,
  type Request,
  rowsOf,
  transferred,
  type UnitResult,
  type WorkerOptions,
} from './message.ts'

const MAX_IDLE = 4

export const CLOSED = new StoreError('the store is closed')

export type Thread = Awaited<ReturnType<typeof startThread>>

/**
 * @param onEnded called when the thread has ended by itself.
 * @throws CannotOpen what the file is.
 */
export async function startThread(options: WorkerOptions, onEnded: () => void = () => {}) {
  const worker = takeWorker()
  const pack = createPacker()
  /** The requests without a reply, in order. */
  const pending: PromiseWithResolvers<Reply>[] = []
  let ended: StoreError | null = null

  const fail = (error: Error): void => {
    // An 'exit' follows an 'error', and may follow a stop.
    const isFirst = ended === null
    ended ??= new StoreError(`the store's thread ended: ${error.message}`)
    for (const { reject } of pending.splice(0)) reject(ended)
    if (isFirst) onEnded()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('it exited')))
  worker.on('message', (replies: Reply[]) => {
    for (const reply of replies) pending.shift()?.resolve(reply)
  })

  async function ask(request: Request): Promise<Reply> {
    if (ended) throw ended
    const reply = Promise.withResolvers<Reply>()
    pending.push(reply)
    worker.postMessage(request, 'message' in request ? transferred([request.message]) : [])
    return reply.promise
  }

  async function end(): Promise<void> {
    // A scanner gives way for good, so no other store may have its thread.
    if (options.role === 'scanner') await worker.terminate()
    else await putBack(worker)
  }

  const reply = await ask({ kind: 'open', options })
  if ('opened' in reply && reply.opened) {
    ended = CLOSED
    await end()
    throw new CannotOpen(reply.opened)
  }

  return {
    async units(units: Unit[]): Promise<(Answer | Error)[]> {
      const reply = await ask({
        kind: 'units',
        message: pack(units.map(({ statements }) => inARow(statements))),
        isFlushed: units.some(({ durability }) => durability !== 'deferred'),
      })
      const results = 'units' in reply ? reply.units : []
      return units.map((unit, i) => unitAnswer(results[i], unit))
    },

    async queries(queries: Query[]): Promise<(Row[] | Error)[]> {
      const reply = await ask({
        kind: 'queries',
        message: pack(queries.map((query) => [query])),
        maps: queries.some((query) => 'through' in query) ? queries.map(mapOf) : null,
      })
      const results = 'queries' in reply ? reply.queries : []
      return queries.map((_, i) => queryRows(results[i]))
    },

    async stop(): Promise<void> {
      const closed = ask({ kind: 'close' })
      // `close` is the last request of this store: the reply to a later one would reach the next.
      ended ??= CLOSED
      await closed
      await end()
    },
  }
}

/** SQLite's own words for why a file cannot be used. */
export class CannotOpen extends Error {
  readonly code: string
  constructor({ code, message }: { code: string; message: string }) {
    super(message)
    this.code = code
  }
}

function mapOf(query: Query): NamedMap | null {
  if (!('through' in query)) return null
  const { through, parameters } = query
  return { module: through.module, name: through.name, parameters }
}

const NO_ANSWER = new StoreError('the store gave no answer')

function unitAnswer(result: UnitResult | undefined, { statements }: Unit): Answer | Error {
  if (result === undefined) return NO_ANSWER
  if (result === null) return byName(statements, null)
  if ('tables' in result) return byName(statements, result.tables.map(rowsOf))
  if ('refused' in result) return new UnitRefused(nameAt(statements, result.refused))
  return storeError(result)
}

function queryRows(result: QueryResult | undefined): Row[] | Error {
  if (result === undefined) return NO_ANSWER
  return 'table' in result ? rowsOf(result.table) : storeError(result)
}

/** Classifies by SQLite's messages: a store that cannot be written now is no fault of the statement. */
export function storeError({ error, isOfValue }: Failure): StoreError {
  if (isOfValue) return new ValueRefused(error)
  const isFull = /database or disk is full|disk I\/O error|database is locked/.test(error)
  return isFull ? new StoreAway(error) : new StoreError(error)
}

const idle = new Set<Worker>()

/** A thread without a file: an idle one, or a new one. */
export function takeWorker(): Worker {
  const [worker] = idle
  if (worker) {
    idle.delete(worker)
    stopListening(worker)
    worker.ref()
    return worker
  }
  return startWorker()
}

/** Starts the thread of a store that will be opened, while its process still loads what opens it. */
export const startWorkerAhead = (): void => void putBack(startWorker())

function startWorker(): Worker {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const file = new URL(`./worker.${extension}`, import.meta.url)
  const cache = getCompileCacheDir()
  if (cache === undefined) return new Worker(file)
  // A thread does not use the cache of its process by itself. From source, each would load the parser of
  // TypeScript. The cache is below the folder that we name, by version and user.
  return new Worker(IN_CACHE, {
    eval: true,
    workerData: { file: fileURLToPath(file), cache: dirname(cache) },
  })
}

/** Neither `require` nor `import`: which of them is there depends on how the process was started. */
const IN_CACHE = `
  const { createRequire, enableCompileCache, flushCompileCache } = process.getBuiltinModule('module')
  const { file, cache } = process.getBuiltinModule('worker_threads').workerData
  enableCompileCache(cache)
  createRequire(file)(file)
  flushCompileCache()
`

/** Takes back a thread that has closed its file. An idle thread does not keep the process running. */
export async function putBack(worker: Worker): Promise<void> {
  stopListening(worker)
  // A thread that ends while idle is dropped. Without a listener, its 'error' would end the process.
  const drop = (): void => void idle.delete(worker)
  worker.on('error', drop)
  worker.on('exit', drop)
  if (idle.size >= MAX_IDLE) {
    await worker.terminate()
    return
  }
  worker.unref()
  idle.add(worker)
}

function stopListening(worker: Worker): void {
  for (const event of ['error', 'exit', 'message']) worker.removeAllListeners(event)
}
