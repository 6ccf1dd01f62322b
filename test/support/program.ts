/** Runs the real program in a process, on a port that it chooses. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { BIN, ENVIRONMENT } from './bin.ts'
import type { After } from './folder.ts'
import { payAt } from './payer.ts'
import { settingsFor } from './store.ts'
import { until } from './until.ts'

export type ProgramOptions = {
  environment?: Record<string, string>
  uid?: number
  /** Another version's program. */
  bin?: string
}

export type Ended = { code: number | null; signal: NodeJS.Signals | null }

export type Program = {
  url: string
  /** Pays an invoice of the simulator. Returns the preimage. */
  pay(bolt11: string): Promise<string>
  pid: number
  /** The parsed lines of stdout so far. */
  logged: Record<string, unknown>[]
  /** Resolves to the first line with this event, now or later. */
  saw(event: string): Promise<Record<string, unknown>>
  /** The text on stderr so far. */
  told(): string
  signal(signal: NodeJS.Signals): void
  /** Kills the process with SIGKILL. */
  kill(): Promise<void>
  ended: Promise<Ended>
}

export type Starting = Omit<Program, 'url' | 'pay'>

/** Starts `mayfly serve` on this SQLite file or URL, and resolves when it listens. */
export async function startProgram(
  t: After,
  file: string,
  options: ProgramOptions = {},
): Promise<Program> {
  const starting = beginProgram(t, file, options)
  const url = String((await starting.saw('listening')).url)
  return { ...starting, url, pay: (bolt11) => payAt(url, bolt11) }
}

/** The same before it listens, which it may never do. */
export function beginProgram(t: After, file: string, options: ProgramOptions = {}): Starting {
  const { child, output } = launch(t, file, options)
  // Only then all that it logged is read.
  const ended = once(child, 'close').then(
    ([code, signal]): Ended => ({ code: code as Ended['code'], signal: signal as Ended['signal'] }),
  )
  const saw = (event: string): Promise<Record<string, unknown>> =>
    Promise.race([
      until(`the program logs ${event}`, () =>
        output.logged.find((candidate) => candidate.event === event),
      ),
      ended.then(({ code, signal }) => {
        throw new Error(`it ended with ${code ?? signal}, and before ${event}: ${output.told}`)
      }),
    ])

  return {
    pid: child.pid ?? 0,
    logged: output.logged,
    saw,
    told: () => output.told,
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
    ended,
  }
}

/** Runs `mayfly serve`, which must exit by itself. */
export async function refusedStart(
  t: After,
  file: string,
  options: ProgramOptions = {},
): Promise<{ code: number | null; told: string }> {
  const { child, output } = launch(t, file, options)
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(120_000) })
  return { code: code as number | null, told: output.told }
}

function launch(
  t: After,
  file: string,
  { environment = {}, uid, bin = BIN }: ProgramOptions,
): { child: ChildProcess; output: { logged: Record<string, unknown>[]; told: string } } {
  const child = spawn(process.execPath, [bin, 'serve'], {
    env: {
      ...ENVIRONMENT,
      MAYFLY_PORT: '0',
      ...settingsFor(/^(?:sqlite|postgres):/.test(file) ? file : `sqlite:${file}`),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  const output = { logged: [] as Record<string, unknown>[], told: '' }
  createInterface({ input: child.stdout }).on('line', (line) => {
    output.logged.push(JSON.parse(line) as Record<string, unknown>)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.told += text
  })
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return { child, output }
}
