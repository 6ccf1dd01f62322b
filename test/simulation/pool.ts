/** Runs many seeds in a few threads: of the service, or of its buyers. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { openStore } from '../../src/db/open.ts'
import type { RunResult as BuyersResult } from './purchases/run.ts'
import type { RunResult } from './run.ts'
import type { WorkerData } from './worker.ts'

export type Options<Result> = {
  firstSeed: number
  runs: number
  threads: number
  /** The name of a mistake to plant. */
  plant?: string | null
  /** Called with each result. Returns false to end early. */
  onResult(result: Result): boolean
}

/** How many runs ended, and whether the last result has stopped the others. */
export type Ended = { ended: number; isStopped: boolean }

export async function runService(
  options: Options<RunResult> & { isTraced?: boolean; eventsPerTurn?: number },
): Promise<Ended> {
  const { plant = null, isTraced = false, eventsPerTurn } = options
  const data: WorkerData = { image: await makeImage(), plant, isTraced, eventsPerTurn }
  return runThreads(options, { worker: './worker.ts', data })
}

export function runBuyers(options: Options<BuyersResult>): Promise<Ended> {
  const { plant = null } = options
  return runThreads(options, { worker: './purchases/worker.ts', data: { plant } })
}

/** An empty store with its tables, as bytes. */
async function makeImage(): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-simulation-'))
  try {
    const file = join(folder, 'empty.db')
    const store = await openStore({ kind: 'sqlite', file })
    await store.close()
    const database = new DatabaseSync(file)
    database.exec('pragma journal_mode = delete')
    const image = database.serialize()
    database.close()
    return image
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function runThreads<Result>(
  { firstSeed, runs, threads, onResult }: Options<Result>,
  { worker: file, data }: { worker: string; data: unknown },
): Promise<Ended> {
  let next = firstSeed
  let ended = 0
  let isStopped = false
  const thread = async (): Promise<void> => {
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: data,
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
    try {
      await new Promise<void>((resolve, reject) => {
        worker.on('error', reject)
        worker.on('message', (message: 'ready' | Result) => {
          if (message !== 'ready') {
            ended++
            if (!onResult(message)) isStopped = true
          }
          if (isStopped || next >= firstSeed + runs) resolve()
          else worker.postMessage(next++)
        })
      })
    } finally {
      await worker.terminate()
    }
  }
  await Promise.all(Array.from({ length: Math.min(threads, runs) }, thread))
  return { ended, isStopped }
}
