/** The processes of one testbed. They are started, signalled and ended only by their own handles. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Processes = ReturnType<typeof createProcesses>
export type Running = ReturnType<typeof handleOf>

const STOP_WITHIN_MS = 60_000

export function createProcesses(folder: string) {
  mkdirSync(folder, { recursive: true })
  const keeper = spawn(process.execPath, [join(import.meta.dirname, 'keeper.ts'), folder], {
    // A new process group, so that a Ctrl-C for the tests does not reach it.
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  // They must not keep the test process alive, because the keeper waits for its end.
  keeper.unref()
  keeper.stdin.on('error', () => {})
  if ('unref' in keeper.stdin && typeof keeper.stdin.unref === 'function') keeper.stdin.unref()
  const tell = (line: string) => keeper.stdin.write(`${line}\n`)
  const running = new Set<Running>()
  const works: (() => unknown)[] = []

  function launch(command: string, args: string[], logFile: string): Running {
    const log = openSync(logFile, 'a')
    const child = spawn(command, args, { detached: true, stdio: ['ignore', log, log] })
    closeSync(log)
    child.unref()
    if (child.pid === undefined) throw new Error(`${command} cannot be started`)
    tell(`+${child.pid}`)
    const handle = handleOf(child, logFile)
    running.add(handle)
    child.once('exit', () => {
      tell(`-${child.pid}`)
      running.delete(handle)
    })
    return handle
  }

  /** Kills the processes that still run, removes the folder, and does what is to be done after that. */
  async function close(): Promise<void> {
    await Promise.all([...running].map((each) => each.kill()))
    if (hasEnded(keeper)) return
    const gone = new Promise((resolve) => keeper.once('exit', resolve))
    keeper.ref()
    keeper.stdin.end()
    await gone
    for (const work of works) await work()
  }

  return { launch, close, after: (work: () => unknown) => void works.push(work) }
}

function handleOf(child: ChildProcess, logFile: string) {
  /** Sends a signal. Does nothing if the process has ended. */
  function signal(name: NodeJS.Signals): void {
    if (!hasEnded(child)) child.kill(name)
  }

  function end(name: NodeJS.Signals): Promise<void> {
    return new Promise((resolve) => {
      if (hasEnded(child)) return resolve()
      const impatience = setTimeout(() => signal('SIGKILL'), STOP_WITHIN_MS)
      child.ref()
      child.once('exit', () => {
        clearTimeout(impatience)
        resolve()
      })
      signal(name)
      // A stopped process reacts only to SIGCONT and SIGKILL.
      signal('SIGCONT')
    })
  }

  return {
    signal,
    /** Asks the process to end, and kills it if it does not. */
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    /** Throws with the end of the log if the process has ended. */
    mustRun(): void {
      if (!hasEnded(child)) return
      const log = readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join('\n')
      throw new Error(`the process of ${logFile} has ended:\n${log}`)
    },
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
