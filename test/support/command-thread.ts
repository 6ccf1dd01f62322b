/** The thread of `command-threads.ts`: runs one command after another, and sends back how each ended. */
import { parentPort } from 'node:worker_threads'
import { runProgram } from '../../src/cli/program.ts'
import type { Ran } from './command.ts'

export type Order = { args: string[]; environment: Record<string, string> }

parentPort?.on('message', async (order: Order) => {
  parentPort?.postMessage(await run(order))
})

async function run({ args, environment }: Order): Promise<Ran> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, environment)
  // A new process has no code of an earlier command, nor its listeners.
  process.exitCode = undefined
  process.stdout.removeAllListeners('error')
  const out = written(process.stdout)
  const err = written(process.stderr)
  return { code: await runProgram(args), out: out(), err: err() }
}

/** Everything that is written from now on, in place of its way out. */
function written(stream: NodeJS.WriteStream): () => string {
  let text = ''
  stream.write = (chunk: string | Uint8Array) => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    return true
  }
  return () => text
}
