/** Runs a command of the real program to its end. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { BIN, ENVIRONMENT } from './bin.ts'

export type Ran = { code: number | null; out: string; err: string }

/** Runs `mayfly …args` with only this environment. */
export async function runCommand(
  args: string[],
  environment: Record<string, string> = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [BIN, ...args], {
    env: { ...ENVIRONMENT, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  return { code: code as number | null, out, err }
}
