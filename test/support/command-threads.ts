/** Commands in threads of this process, which load the program once for all commands of all files. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { ENVIRONMENT } from './bin.ts'
import type { Order, RanInThread } from './command-thread.ts'

const idle: Worker[] = []

/**
 * Runs `mayfly …args` with only this environment, for tests that ask what a command did. How the real program starts,
 * reads stdin, obeys signals and ends is for a process, which takes half a second of processor time longer.
 */
export async function runInThread(
  args: string[],
  environment: Record<string, string> = {},
): Promise<RanInThread> {
  const thread = idle.pop() ?? new Worker(new URL('./command-thread.ts', import.meta.url))
  thread.ref()
  const over = new AbortController()
  const order: Order = { args, environment: { ...ENVIRONMENT, ...environment } }
  thread.postMessage(order)
  const { signal } = over
  try {
    const ended = once(thread, 'exit', { signal }).then(() => {
      throw new Error(`mayfly ${args.join(' ')} ended its thread`)
    })
    const [ran] = await Promise.race([once(thread, 'message', { signal }), ended])
    thread.unref()
    idle.push(thread)
    return ran as RanInThread
  } finally {
    over.abort()
  }
}
