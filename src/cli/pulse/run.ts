/**
 * `mayfly pulse run NAME -- COMMAND`: runs a job, and tells its monitor when it began and how it ended.
 * `bin/job.mjs` starts the job before this module is loaded.
 */
import { createMayfly, type PulseClient } from '../../client/index.ts'
import { unlessAborted } from '../../lib/abort.ts'
import { dataFolder } from '../data-folder.ts'
import { CliError, EXIT, endingOf, notThere } from '../exit.ts'
import { printDebug } from '../output.ts'
import { harmless } from '../text.ts'
import { traced } from '../trace.ts'
import { loadPing } from '../vault/saved.ts'

/** The time limit of all tries. The job is over, and its caller waits for the exit code. */
export const PING_MS = 10_000

/** The error of a ping that was refused, with what may have happened and what to do. */
export function refusedPing(error: unknown, name: string): unknown {
  if (endingOf(error, '')?.code !== EXIT.gone || error instanceof CliError) return error
  return notThere(
    `The service refused the ping: ${name} has ended, has used up its pings, or its owner has replaced the ping token. The owner sees which: mayfly status ${name}. If a rotation was interrupted, run it again: mayfly pulse rotate ${name}`,
  )
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
      await unlessAborted(until, begun)
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
