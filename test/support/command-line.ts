/** Runs the command line for a user with a new data folder: to its end in a thread, or in a process that is started. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { BIN, ENVIRONMENT } from './bin.ts'
import { portWith, runInThread } from './command-threads.ts'
import { type After, temporaryFolder } from './folder.ts'

export type CommandEnded = {
  code: number | null
  signal: NodeJS.Signals | null
  /** The bytes of stdout. */
  bytes: Buffer
  out: string
  err: string
}

export type CommandOptions = {
  environment?: Record<string, string>
  /** Null leaves stdin open. */
  input?: string | Uint8Array | null
  uid?: number
}

export type CommandLine = Awaited<ReturnType<typeof commandLine>>
export type Running = ReturnType<CommandLine['start']>

/** `mayfly …` for one user of a service. At the end of the test, all of its processes are killed. */
export async function commandLine(
  t: After,
  url: string,
  program: { bin?: string; node?: string } = {},
) {
  const { bin = BIN, node = process.execPath } = program
  await oneDay()
  const home = await temporaryFolder(t)
  const environmentOf = ({ environment = {} }: CommandOptions) => ({
    XDG_DATA_HOME: home,
    MAYFLY_URL: url,
    ...environment,
  })

  /** In a process, as every command of another user is. */
  function start(args: string[], options: CommandOptions & { stdout?: number } = {}) {
    const { input = '', uid, stdout = 'pipe' } = options
    const child = spawn(node, [bin, ...args], {
      ...(uid === undefined ? {} : { uid }),
      env: { ...ENVIRONMENT, ...environmentOf(options) },
      stdio: ['pipe', stdout, 'pipe'],
    })
    const chunks: Buffer[] = []
    let err = ''
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      err += text
    })
    // A command that ends without reading its stdin closes it.
    child.stdin?.on('error', () => undefined)
    if (input !== null) child.stdin?.end(input)
    t.after(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    })
    const ended = once(child, 'close').then(([code, signal]): CommandEnded => {
      const bytes = Buffer.concat(chunks)
      return {
        code: code as number | null,
        signal: signal as NodeJS.Signals | null,
        bytes,
        out: bytes.toString('utf8'),
        err,
      }
    })
    return { child, out: () => Buffer.concat(chunks).toString('utf8'), err: () => err, ended }
  }

  const isOwn = program.bin === undefined && program.node === undefined
  async function run(args: string[], options: CommandOptions = {}): Promise<CommandEnded> {
    const { input, uid } = options
    const isPlain = isOwn && input !== null && uid === undefined
    // The job of `pulse run` is the program's entry.
    if (!isPlain || args.includes('run')) return start(args, options).ended
    const live = input === undefined ? undefined : portWith(input)
    const { bytes, ...ran } = await runInThread(args, environmentOf(options), live)
    return { ...ran, signal: null, bytes: Buffer.from(bytes) }
  }

  return {
    /** The user's data folder. */
    folder: join(home, 'mayfly'),
    start,
    run,
    /** Runs a command whose stdout takes nothing: a file that is open for reading. */
    withoutStdout: (args: string[]) => start(args, { stdout: openSync(BIN, 'r') }).ended,
    /** Runs a command that must exit with 0, and parses the last line of its output as JSON. */
    async json(args: string[], options?: CommandOptions) {
      const { code, out, err } = await run(args, options)
      if (code !== 0) throw new Error(`mayfly ${args.join(' ')} ended with ${code}: ${err}`)
      return JSON.parse(out.trim().split('\n').at(-1) ?? '') as Record<string, unknown>
    },
  }
}

/** The environment of a user with a wallet that pays on the simulator. */
export const WITH_WALLET = { environment: { MAYFLY_WALLET_URL: 'simulator:' } }

const DAY = 86_400_000
/** No test of a command takes as long. */
const LONGEST_MS = 120_000

/** A command counts what it has spent by the days of UTC. Resolves at once, but for the last minutes of a day: what one test pays belongs to one day. */
export async function oneDay(): Promise<void> {
  const left = DAY - (Date.now() % DAY)
  if (left < LONGEST_MS) await wait(left)
}
