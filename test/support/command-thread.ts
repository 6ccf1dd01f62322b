/** The thread of `command-threads.ts`: runs one command after another, and sends back how each ended. */
import { Readable } from 'node:stream'
import { type MessagePort, parentPort } from 'node:worker_threads'
import { runProgram } from '../../src/cli/program.ts'

/** With `live`, its input comes through the port, and its output goes there as it is written. */
export type Order = { args: string[]; environment: Record<string, string>; live?: MessagePort }
export type RanInThread = { code: number; bytes: Uint8Array; out: string; err: string }
export type Wrote = { to: 'out' | 'err'; text: string }

parentPort?.on('message', async (order: Order) => {
  parentPort?.postMessage(await run(order))
})

async function run({ args, environment, live }: Order): Promise<RanInThread> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, environment)
  // A new process has no code of an earlier command, nor its listeners, nor its console.
  process.exitCode = undefined
  process.stdout.removeAllListeners('error')
  const { console } = globalThis
  takeInput(live)
  const tell = (to: Wrote['to']) => (chunk: Buffer) =>
    live?.postMessage({ to, text: chunk.toString() } satisfies Wrote)
  const out = written(process.stdout, tell('out'))
  const err = written(process.stderr, tell('err'))
  const code = await runProgram(args)
  globalThis.console = console
  live?.close()
  return { code, bytes: out(), out: out().toString(), err: err().toString() }
}

/** Makes stdin of what comes through the port. Null ends it, and without a port it is empty. */
function takeInput(live: MessagePort | undefined): void {
  const stdin = new Readable({ read: () => undefined })
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true })
  if (live) live.on('message', (chunk: string | Uint8Array | null) => stdin.push(chunk))
  else stdin.push(null)
}

/** Everything that is written from now on, in place of its way out. */
function written(stream: NodeJS.WriteStream, tell: (chunk: Buffer) => void): () => Buffer {
  const chunks: Buffer[] = []
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    const bytes = Buffer.from(chunk as string)
    chunks.push(bytes)
    tell(bytes)
    const done = rest.at(-1)
    if (typeof done === 'function') process.nextTick(done)
    return true
  }
  return () => Buffer.concat(chunks)
}
