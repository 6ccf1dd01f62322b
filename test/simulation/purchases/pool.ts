/** Runs many seeds of buyers in a few threads. */
import { Worker } from 'node:worker_threads'
import type { RunResult } from './run.ts'

export async function runBuyers(options: {
  firstSeed: number
  runs: number
  threads: number
  plant: string | null
  /** Returns false to end early. */
  onResult(result: RunResult): boolean
}): Promise<{ ended: number; isStopped: boolean }> {
  const { firstSeed, runs, threads, plant, onResult } = options
  let next = firstSeed
  let ended = 0
  let isStopped = false
  const thread = async (): Promise<void> => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: { plant } })
    try {
      await new Promise<void>((resolve, reject) => {
        worker.on('error', reject)
        worker.on('message', (message: 'ready' | RunResult) => {
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
