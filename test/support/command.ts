/** Runs a command to its end, in a thread: what it does with signals and its input is for a process. */
import { runInThread } from './command-threads.ts'

export type Ran = { code: number | null; out: string; err: string }

/** Runs `mayfly …args` with only this environment. */
export async function runCommand(
  args: string[],
  environment: Record<string, string> = {},
): Promise<Ran> {
  const { code, out, err } = await runInThread(args, environment)
  return { code, out, err }
}
