/** The thread of `command-threads.ts`: runs one command after another, and sends back how each ended. */
import { parentPort } from 'node:worker_threads'
import { runProgram } from '../../src/cli/program.ts'

export type Order = { args: string[]; environment: Record<string, string> }
export type RanInThread = { code: number; bytes: Uint8Array; out: string; err: string }

parentPort?.on('message', async (order: Order) => {
  parentPort?.postMessage(await run(order))
})

async function run({ args, environment }: Order): Promise<RanInThread> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, environment)
  // A new process has no code of an earlier command, nor its listeners.
  process.exitCode = undefined
  process.stdout.removeAllListeners('error')
  const out = written(process.stdout)
  const err = written(process.stderr)
  const code = await runProgram(args)
  return { code, bytes: out(), out: out().toString(), err: err().toString() }
}

/** Everything that is written from now on, in place of its way out. */
function written(stream: NodeJS.WriteStream): () => Buffer {
  const chunks: Buffer[] = []
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    chunks.push(Buffer.from(chunk as string))
    const done = rest.at(-1)
    if (typeof done === 'function') process.nextTick(done)
    return true
  }
  return () => Buffer.concat(chunks)
}
