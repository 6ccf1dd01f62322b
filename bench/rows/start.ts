/**
 * A start until the first answer, and what it holds afterwards: `npm start` and the program alone, each with
 * the compile cache empty and as the start before left it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { cpuMsOf } from '../cpu.ts'
import type { Engine } from '../engine.ts'
import { listening, residentMib, SERVE } from '../program.ts'

const ROUNDS = 5
/** By then the service has written its cache, and has nothing to do. */
const IDLE_MS = 5_000

type Started = { answerMs: number; cpuMs: number; idleMib: number }
type Command = { command: string; args: string[] }

const COMMANDS: Record<string, Command> = {
  'npm start': { command: 'npm', args: ['start'] },
  'the program alone': { command: process.execPath, args: SERVE },
}

export async function startRow(engine: Engine): Promise<string[]> {
  const found = new Map<string, Started[]>()
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, command] of Object.entries(COMMANDS)) {
      const cache = await mkdtemp(join(tmpdir(), 'mayfly-bench-'))
      for (const state of ['cold', 'warm']) {
        const kind = `${name}, ${state}`
        const started = await startOnce(engine, command, cache)
        found.set(kind, [...(found.get(kind) ?? []), started])
      }
      await rm(cache, { recursive: true, force: true })
    }
  }
  return [...found].map(([kind, runs]) => {
    const shown = (pick: (run: Started) => number): string => middleOf(runs.map(pick))
    return (
      `${kind}: first answer after ${shown(({ answerMs }) => answerMs)} ms; ` +
      `the service's CPU until then ${shown(({ cpuMs }) => cpuMs)} ms; ` +
      `idle ${shown(({ idleMib }) => idleMib)} MiB`
    )
  })
}

async function startOnce(
  engine: Engine,
  { command, args }: Command,
  cache: string,
): Promise<Started> {
  const store = await engine.newStore()
  const begin = performance.now()
  const child = spawn(command, args, {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: cache,
      MAYFLY_PORT: '0',
      NODE_COMPILE_CACHE: cache,
      ...store.environment,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
    // A group of its own, because npm passes no signal on.
    detached: true,
  })
  const ended = once(child, 'exit')
  try {
    const url = await listening(child)
    const { status } = await fetch(`${url}/health`)
    if (status !== 200) throw new Error(`the first answer was ${status}`)
    const answerMs = performance.now() - begin
    const pid = serviceIn(child.pid ?? 0)
    const cpuMs = cpuMsOf(pid)
    await wait(IDLE_MS)
    return { answerMs, cpuMs, idleMib: residentMib(pid) }
  } finally {
    process.kill(-(child.pid ?? 0), 'SIGTERM')
    await ended
    await store.remove()
  }
}

/** The service in a process group, which may have npm in it as well. */
function serviceIn(group: number): number {
  for (const pid of readdirSync('/proc').map(Number)) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const [, , ofGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      if (Number(ofGroup) === group && command.includes('bin/mayfly.mjs')) return pid
    } catch {
      // Not a process, or it has ended meanwhile.
    }
  }
  throw new Error('npm started no service')
}

/** The middle of several, and their range. */
function middleOf(values: number[]): string {
  const sorted = values.map(Math.round).toSorted((a, b) => a - b)
  return `${sorted[Math.floor(sorted.length / 2)]} (${sorted[0]} to ${sorted.at(-1)})`
}
