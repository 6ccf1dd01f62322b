/**
 * `mayfly pulse run NAME -- COMMAND`: runs a job, and pings after it has succeeded. `bin/job.mjs` runs
 * the job before this module is loaded.
 */
import type { Command } from 'commander'
import { createMayfly, MayflyError } from '../client/index.ts'
import { wait } from '../client/wait.ts'
import { dataFolder } from './data-folder.ts'
import { examples } from './examples.ts'
import { EXIT, endingOf } from './exit.ts'
import { loadPulse } from './saved.ts'
import { harmless } from './text.ts'

/** How often a ping is sent if it is lost or refused temporarily. */
const PING_TRIES = 4
/** The time limit of all tries. The job is over, and its caller waits for the exit code. */
const PING_MS = 10_000

export function addPulseRun(parent: Command): void {
  parent
    .command('run')
    .description('run a command, and ping if it succeeds')
    .argument('<name>', 'the monitor')
    .argument('<command...>', 'the command and its arguments, after --')
    .addHelpText(
      'after',
      `${examples('mayfly pulse run backup -- ./backup.sh --all')}
The command always runs first, even with an unknown name, an unreadable file, an old Node, or a service that
does not answer. It gets this environment, wallet included, and all signals. \`pulse run\` ends with its exit
code, or with 128 plus the number of the signal that ended it. The ping takes at most ${PING_MS / 1000} seconds. If it
fails, stderr says so and the exit code stays the same.
`,
    )
    // Never reached through the entry, which has run the job.
    .action(() => {
      process.stderr.write('This runs jobs as `mayfly pulse run` alone (bin/mayfly.mjs).\n')
      process.exitCode = EXIT.usage
    })
}

/** Pings after a job has succeeded, and reports a failure on stderr. Never rejects. */
export async function pingAfter(name: string): Promise<void> {
  const over = new AbortController()
  const signalled = (): void => over.abort()
  for (const signal of ENDING) process.on(signal, signalled)
  const limit = AbortSignal.timeout(PING_MS)
  let url = ''
  try {
    const { capability, baseUrl } = loadPulse({ folder: dataFolder() }, name)
    url = baseUrl
    const until = AbortSignal.any([over.signal, limit])
    const fetch: typeof globalThis.fetch = (input, init) =>
      globalThis.fetch(input, {
        ...init,
        signal: AbortSignal.any([until, ...(init?.signal ? [init.signal] : [])]),
      })
    await ping(createMayfly({ baseUrl, fetch }).pulse(capability), until)
  } catch (error) {
    warn(
      limit.aborted
        ? `${url} did not accept it within ${PING_MS / 1000} seconds.`
        : reasonOf(error, url),
    )
  } finally {
    for (const signal of ENDING) process.off(signal, signalled)
  }
}

const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

async function ping(monitor: { ping(): Promise<void> }, until: AbortSignal): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await monitor.ping()
    } catch (error) {
      const isOver = !(error instanceof MayflyError) || endingOf(error, '')?.code === EXIT.gone
      if (isOver || tries === PING_TRIES || until.aborted) throw error
      await wait(2 ** (tries - 1), until)
    }
  }
}

function reasonOf(error: unknown, url: string): string {
  const ending = endingOf(error, url)
  // A bug. Shows only the error's name, since its message could contain secrets.
  return ending?.sentence ?? `It ended with ${error instanceof Error ? error.name : 'an error'}.`
}

function warn(sentence: string): void {
  const line = harmless(`The command succeeded, and the ping failed. ${sentence}`, { lines: true })
  process.stderr.write(`${line}\n`)
}
