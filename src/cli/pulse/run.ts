/**
 * `mayfly pulse run NAME -- COMMAND`: runs a job, and tells its monitor when it began and how it ended.
 * `bin/job.mjs` starts the job before this module is loaded.
 */
import type { Command } from 'commander'
import { createMayfly, type PulseClient } from '../../client/index.ts'
import { dataFolder } from '../data-folder.ts'
import { EXIT, endingOf } from '../exit.ts'
import { printDebug } from '../output.ts'
import { harmless, helpText } from '../text.ts'
import { traced } from '../trace.ts'
import { loadPing } from '../vault/saved.ts'
import { refusedPing } from './rotate.ts'

/** The time limit of all tries. The job is over, and its caller waits for the exit code. */
const PING_MS = 10_000

export function addPulseRun(parent: Command): void {
  parent
    .command('run')
    .description(
      'run a command, and report its start, its end and its exit code: success is a ping',
    )
    .argument('<name>', 'the monitor')
    .argument('<command...>', 'the command and its arguments, after --')
    .option('--ping-only', 'only ping after a success, for one heartbeat a run instead of two')
    .addHelpText(
      'after',
      helpText({
        examples: ['mayfly pulse run backup -- ./backup.sh --all'],
        notes: `
The command always runs first, even with an unknown name, an unreadable file, an old Node, or a service that
does not answer. It inherits this environment, wallet included, and receives all signals. \`pulse run\` ends with its exit
code, or with 128 plus the number of the signal that ended it. The monitor is told of the start beside the
command, and of the exit code after it, in at most ${PING_MS / 1000} seconds. If that fails, stderr says so and the exit code
stays the same.
`,
      }),
    )
    // Never reached through the entry, which has run the job.
    .action(() => {
      process.stderr.write('This runs jobs as `mayfly pulse run` alone (bin/mayfly.mjs).\n')
      process.exitCode = EXIT.usage
    })
}

/** Tells how a run ended: its exit code. Never rejects. */
export type TellEnd = (exitCode: number) => Promise<void>

/** Tells the monitor of a run, which has begun. Problems are reported on stderr, at the run's end. */
export function tellOfRun(
  name: string,
  { isPingOnly, isDebug }: { isPingOnly: boolean; isDebug: boolean },
): TellEnd {
  const fetch = isDebug ? traced(globalThis.fetch, printDebug) : globalThis.fetch
  const monitorNow = (): PulseClient => {
    const { capability, baseUrl } = loadPing({ folder: dataFolder() }, name)
    return createMayfly({ baseUrl, fetch }).pulse(capability)
  }
  const rid = crypto.randomUUID()
  const start = async (): Promise<void> => monitorNow().start({ rid, timeoutMs: PING_MS })
  // What keeps it from being told is told at the end.
  const begun = isPingOnly ? Promise.resolve() : start().catch(() => undefined)
  return async (exitCode) => {
    if (isPingOnly && exitCode !== 0) return
    const limit = AbortSignal.timeout(PING_MS)
    const over = new AbortController()
    const signalled = (): void => over.abort()
    for (const signal of ENDING) process.on(signal, signalled)
    let url = ''
    try {
      url = urlOf(name)
      const until = AbortSignal.any([over.signal, limit])
      // A start that arrives after its end would stay open.
      await Promise.race([begun, ended(until)])
      // The SDK sends again what is lost or refused temporarily.
      const told = { signal: until, timeoutMs: PING_MS }
      const monitor = monitorNow()
      await (isPingOnly ? monitor.ping(told) : monitor.exit(exitCode, { rid, ...told }))
    } catch (error) {
      warn(
        exitCode,
        limit.aborted
          ? `${url} did not accept it within ${PING_MS / 1000} seconds.`
          : reasonOf(refusedPing(error, name), url),
      )
    } finally {
      for (const signal of ENDING) process.off(signal, signalled)
    }
  }
}

const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

const urlOf = (name: string): string => loadPing({ folder: dataFolder() }, name).baseUrl

const ended = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const end = (): void => reject(signal.reason)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })

function reasonOf(error: unknown, url: string): string {
  const ending = endingOf(error, url)
  // A bug. Shows only the error's name, since its message could contain secrets.
  return ending?.sentence ?? `It ended with ${error instanceof Error ? error.name : 'an error'}.`
}

function warn(exitCode: number, sentence: string): void {
  const what =
    exitCode === 0
      ? 'The command succeeded, and the ping failed.'
      : 'The command failed, and so did the report to its monitor.'
  process.stderr.write(`${harmless(`${what} ${sentence}`, { lines: true })}\n`)
}
