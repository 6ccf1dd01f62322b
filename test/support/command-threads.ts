/** Commands in threads of this process, which load the program once for all commands of a file. */
import { once } from 'node:events'
import { after } from 'node:test'
import { Worker } from 'node:worker_threads'
import { ENVIRONMENT } from './bin.ts'
import type { Ran } from './command.ts'
import type { Order } from './command-thread.ts'

/**
 * Called once, in a file. Runs commands like `runCommand`, for tests that ask what a command did to a store. How
 * the real program starts and ends is for `runCommand`, which takes half a second of processor time longer.
 */
export function commandThreads(): typeof run {
  const threads: Worker[] = []
  const idle: Worker[] = []
  after(() => Promise.all(threads.map((thread) => thread.terminate())))

  async function run(args: string[], environment: Record<string, string> = {}): Promise<Ran> {
    const thread = idle.pop() ?? start()
    const ended = once(thread, 'message')
    const order: Order = { args, environment: { ...ENVIRONMENT, ...environment } }
    thread.postMessage(order)
    const [ran] = (await ended) as [Ran]
    idle.push(thread)
    return ran
  }

  function start(): Worker {
    const thread = new Worker(new URL('./command-thread.ts', import.meta.url))
    threads.push(thread)
    return thread
  }

  return run
}
