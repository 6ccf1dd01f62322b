/** Runs the real program in a process, on a port that it chooses. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { BIN, ENVIRONMENT } from './bin.ts'
import type { After } from './folder.ts'
import { payAt } from './payer.ts'
import { settingsFor } from './store.ts'
import { until } from './until.ts'

type ProgramOptions = {
  environment?: Record<string, string>
  uid?: number
  /** Another version's program. */
  bin?: string
}

type Ended = { code: number | null; signal: NodeJS.Signals | null }

export type Program = Awaited<ReturnType<typeof startProgram>>
export type Starting = ReturnType<typeof beginProgram>

/** Starts `mayfly serve` on this SQLite file or URL, and resolves when it listens. */
export async function startProgram(t: After, file: string, options: ProgramOptions = {}) {
  const starting = beginProgram(t, file, options)
  const url = String((await starting.saw('listening')).url)
  return {
    ...starting,
    url,
    /** Pays an invoice of the simulator. Returns the preimage. */
    pay: (bolt11: string) => payAt(url, bolt11),
  }
}

/** The same before it listens, which it may never do. */
export function beginProgram(t: After, file: string, options: ProgramOptions = {}) {
  const { child, output } = launch(t, file, options)
  // Only then all that it logged is read.
  const ended = once(child, 'close').then(
    ([code, signal]): Ended => ({ code: code as Ended['code'], signal: signal as Ended['signal'] }),
  )
  /** Resolves to the first line with this event, now or later. */
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
    /** The parsed lines of stdout so far. */
    logged: output.logged,
    saw,
    /** The text on stderr so far. */
    told: () => output.told,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
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
