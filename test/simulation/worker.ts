/** A thread that runs seeds. It must be told first which mistake to plant, before the service is loaded. */
import { parentPort, workerData } from 'node:worker_threads'
import { PLANTS } from './plants.ts'
import type { RunOptions } from './run.ts'
import { installHooks } from './world/hooks.ts'

export type WorkerData = RunOptions & { plant: string | null }

const { plant, ...options } = workerData as WorkerData
installHooks(PLANTS.find(({ name }) => name === plant) ?? null)
const { runSeed } = await import('./run.ts')
// Both load what is imported late, so that no run depends on when a file is read.
await import('../../src/alerts/outbound.ts')
await runSeed(0, options)

parentPort?.on('message', async (seed: number) => {
  const { trace, logged, ...result } = await runSeed(seed, options)
  parentPort?.postMessage({ ...result, ...(options.isTraced ? { trace, logged } : {}) })
})
parentPort?.postMessage('ready')
