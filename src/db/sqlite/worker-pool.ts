/** Reuses the threads of closed stores: starting a thread takes longer than opening a file in an idle one. */
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
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new Worker(new URL(`./worker.${extension}`, import.meta.url))
}

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
