/** Commands in threads of this process, which load the program once for all commands of all files. */
import { once } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { Transport } from '@modelcontextprotocol/client'
import { ENVIRONMENT } from './bin.ts'
import type { Order, RanInThread, Wrote } from './command-thread.ts'

const idle: Worker[] = []

/**
 * Runs `mayfly …args` with only this environment, for tests that ask what a command did. How the real program starts,
 * obeys signals and ends is for a process, which takes half a second of processor time longer.
 */
export async function runInThread(
  args: string[],
  environment: Record<string, string> = {},
  live?: MessagePort,
): Promise<RanInThread> {
  const thread = idle.pop() ?? new Worker(new URL('./command-thread.ts', import.meta.url))
  thread.ref()
  const over = new AbortController()
  const order: Order = {
    args,
    environment: { ...ENVIRONMENT, ...environment },
    ...(live ? { live } : {}),
  }
  thread.postMessage(order, live ? [live] : [])
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

/** The port for a command whose whole input this is. */
export function portWith(input: string | Uint8Array): MessagePort {
  const { port1: ours, port2: theirs } = new MessageChannel()
  if (input.length > 0) ours.postMessage(input)
  ours.postMessage(null)
  return theirs
}

/** `mayfly mcp …args` in a thread. It has the process id of this process, so a vault takes all of them for one. */
export function hostInThread(
  args: string[],
  environment: Record<string, string>,
  onErr: (text: string) => void = () => undefined,
): Transport {
  const { port1: ours, port2: theirs } = new MessageChannel()
  let ended: Promise<unknown> = Promise.resolve()
  let rest = ''
  const transport: Transport = {
    async start() {
      ended = runInThread(['mcp', ...args], environment, theirs)
        .catch((error: Error) => transport.onerror?.(error))
        .finally(() => {
          ours.close()
          transport.onclose?.()
        })
    },
    send: async (message) => ours.postMessage(`${JSON.stringify(message)}\n`),
    async close() {
      ours.postMessage(null)
      await ended
    },
  }
  ours.on('message', ({ to, text }: Wrote) => {
    if (to === 'err') return onErr(text)
    const lines = `${rest}${text}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) transport.onmessage?.(JSON.parse(line))
  })
  return transport
}
