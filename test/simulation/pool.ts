/** Runs many seeds in a few threads. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { openStore } from '../../src/db/open.ts'
import type { RunResult } from './run.ts'
import type { WorkerData } from './worker.ts'

export type PoolOptions = {
  firstSeed: number
  runs: number
  threads: number
  /** The name of a mistake to plant. */
  plant?: string | null
  isTraced?: boolean
  eventsPerTurn?: number
  /** Called with each result. Returns false to end early. */
  onResult(result: RunResult): boolean
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

/** @returns the number of runs that ended. */
export async function runPool(options: PoolOptions): Promise<number> {
  const { firstSeed, runs, threads, plant = null, isTraced = false, onResult } = options
  const { eventsPerTurn } = options
  const workerData: WorkerData = { image: await makeImage(), plant, isTraced, eventsPerTurn }
  let next = firstSeed
  let ended = 0
  let isStopping = false
  const threadsEnd = Array.from({ length: Math.min(threads, runs) }, async () => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData,
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
    try {
      await new Promise<void>((resolve, reject) => {
        worker.on('error', reject)
        worker.on('message', (message: 'ready' | RunResult) => {
          if (message !== 'ready') {
            ended++
            if (!onResult(message)) isStopping = true
          }
          if (isStopping || next >= firstSeed + runs) resolve()
          else worker.postMessage(next++)
        })
      })
    } finally {
      await worker.terminate()
    }
  })
  await Promise.all(threadsEnd)
  return ended
}
