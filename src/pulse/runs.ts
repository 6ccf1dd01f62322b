/** The runs of a job: which have begun, and how the last one ended. They are JSON in the monitor's row. */
import type { MonitorRow } from './store.ts'

/** Runs that have begun and not ended. The oldest one makes room: its job was probably killed. */
export const MAX_OPEN_RUNS = 16

/** Times are unix milliseconds. Without a rid, a job has one run at a time. */
type OpenRun = [rid: string, startedAt: number]

/** The last run that ended. `startedAt` is null if its start was not sent, `exitCode` if it gave none. */
export type EndedRun = {
  rid: string | null
  startedAt: number | null
  endedAt: number
  hasFailed: boolean
  exitCode: number | null
}

/** `isRun` is false for a plain ping, which ends a run only if one has begun. */
export type RunEnd = { rid: string | null; time: number; exitCode: number | null; isRun: boolean }

/** The open runs after one more has begun. */
export function beginRun(
  { open_runs }: Pick<MonitorRow, 'open_runs'>,
  { rid, time }: { rid: string | null; time: number },
): string {
  const name = rid ?? ''
  const open = openRuns(open_runs).filter(([other]) => other !== name)
  return stored([...open, [name, time] as OpenRun].slice(-MAX_OPEN_RUNS))
}

/** The run that has ended, and the open runs without it. Null: a ping without a run, which changes nothing. */
export function endRun(
  { open_runs }: Pick<MonitorRow, 'open_runs'>,
  { rid, time, exitCode, isRun }: RunEnd,
): { ended: EndedRun; runs: Pick<MonitorRow, 'open_runs' | 'last_run'> } | null {
  const name = rid ?? ''
  const open = openRuns(open_runs)
  const begun = open.find(([other]) => other === name)
  if (!begun && !isRun) return null
  const ended: EndedRun = {
    rid,
    startedAt: begun?.[1] ?? null,
    endedAt: time,
    hasFailed: exitCode !== 0,
    exitCode,
  }
  return {
    ended,
    runs: {
      open_runs: stored(open.filter((run) => run !== begun)),
      last_run: JSON.stringify(ended),
    },
  }
}

export const openRuns = (text: string): OpenRun[] => (text === '' ? [] : JSON.parse(text))

export const lastRun = (text: string): EndedRun | null => (text === '' ? null : JSON.parse(text))

const stored = (open: OpenRun[]): string => (open.length === 0 ? '' : JSON.stringify(open))
