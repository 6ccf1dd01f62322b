/** A thread that runs seeds of buyers. The mistake is planted before the SDK is loaded. */
import { parentPort, workerData } from 'node:worker_threads'
import { installHooks } from '../world/hooks.ts'
import { PLANTS } from './plants.ts'

const { plant } = workerData as { plant: string | null }
installHooks((PLANTS.find(({ name }) => name === plant) ?? null) as never)
const { runSeed } = await import('./run.ts')

parentPort?.on('message', async (seed: number) => {
  parentPort?.postMessage(await runSeed(seed))
})
parentPort?.postMessage('ready')
