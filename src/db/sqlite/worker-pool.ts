/** Reuses the threads of closed stores: starting a thread takes longer than opening a file in an idle one. */
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'

const MAX_IDLE = 4

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

/** Starts the two threads of a store that will be opened, while its process still loads what opens it. */
export function startWorkersAhead(): void {
  for (let i = 0; i < 2; i++) void putBack(startWorker())
}

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
