/**
 * Ends the nodes and removes their folder when its input closes, which happens however the process that
 * started it ends. Input: lines `+pid` and `-pid`. Argument: the folder, which every node has in its
 * command line.
 */
import { readFileSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'

const folder = process.argv[2] ?? ''
const pids = new Set<number>()

function end(): void {
  for (const pid of pids) if (isOurs(pid)) kill(pid)
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  process.exit()
}

function isOurs(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
  } catch {
    // Without /proc, the list is enough: a pid leaves it as soon as the process ends.
    return process.platform !== 'linux'
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has ended already.
  }
}

// Ctrl-C reaches this process too. The input closes a moment later.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const pid = Number(line.slice(1))
    if (line.startsWith('+')) pids.add(pid)
    else pids.delete(pid)
  })
  .on('close', end)
