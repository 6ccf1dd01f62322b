/** The threads of closed stores. Starting one costs more than opening the next file in it. */
import { Worker } from 'node:worker_threads'

const MAX_IDLE = 4

const idle = new Set<Worker>()

/** A thread without a file: one of a closed store, or else a new one. */
export function takeWorker(): Worker {
  const [worker] = idle
  if (worker) {
    idle.delete(worker)
    stopListening(worker)
    worker.ref()
    return worker
  }
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new Worker(new URL(`./worker.${extension}`, import.meta.url))
}

/** Takes a thread back that has closed its file. It keeps no process running, and is gone with it. */
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
