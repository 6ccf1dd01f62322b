// The job of `mayfly pulse run`. Plain JavaScript with nothing of ours in it, so that the job runs
// whatever is wrong with the program around it: an old Node, a setting, a file, the service.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/** What a shell answers for a command that it cannot find or run, or that a signal ended. */
const NOT_FOUND = 127
const NOT_RUNNABLE = 126
const BY_SIGNAL = 128

/** All that somebody sends to end or to steer a job. SIGUSR1 is Node's own. */
const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGCONT']
/** On a terminal these reach the job by themselves. */
const OF_TERMINAL = ['SIGINT', 'SIGQUIT']

/** Options of every command that take a value. */
const WITH_VALUE = ['--url', '--max-sats']

/**
 * The job in the arguments of the program, or null where they are another command's, or ask for help.
 * Without a name there is still a job, and nobody to be told of it.
 */
export function jobIn(args) {
  const end = args.indexOf('--')
  const before = end === -1 ? args : args.slice(0, end)
  const words = []
  let isPingOnly = false
  let isDebug = false
  let i = 0
  // A command begins with no dash: until it comes, options are ours.
  for (; i < before.length && (words.length < 3 || before[i].startsWith('-')); i++) {
    const arg = before[i]
    if (arg === '--help' || arg === '-h') return null
    if (WITH_VALUE.includes(arg)) i++
    else if (arg === '--ping-only') isPingOnly = true
    else if (arg === '--debug') isDebug = true
    else if (!arg.startsWith('-')) words.push(arg)
    if (words.length === 1 && words[0] !== 'pulse') return null
    if (words.length === 2 && words[1] !== 'run') return null
  }
  if (words.length < 2) return null
  const command = args.slice(i < before.length || end === -1 ? i : end + 1)
  return command.length === 0 ? null : { name: words[2] || '', command, isPingOnly, isDebug }
}

/** Runs the job with our own stdin, stdout and stderr. Resolves to its exit code, and never rejects. */
export function runJob([file, ...args]) {
  return new Promise((resolve) => {
    const failed = (error) => {
      const isMissing = error.code === 'ENOENT'
      const why = isMissing ? 'there is no such command' : error.code || error.message
      process.stderr.write(`${file} cannot be run: ${why}.\n`)
      resolve(isMissing ? NOT_FOUND : NOT_RUNNABLE)
    }
    // Whoever reads our stderr may have gone, which is no reason to end the job.
    process.stderr.on('error', () => undefined)
    let job = null
    const passOn = (signal) => {
      if (OF_TERMINAL.includes(signal) && process.stdin.isTTY) return
      if (job !== null) job.kill(signal)
    }
    for (const signal of PASSED_ON) process.on(signal, passOn)
    try {
      job = spawn(file, args, { stdio: 'inherit' })
    } catch (error) {
      failed(error)
      return
    }
    job.on('error', (error) => {
      // One that could not be signalled runs on.
      if (job.pid === undefined) failed(error)
    })
    job.on('exit', (code, signal) => {
      for (const name of PASSED_ON) process.removeListener(name, passOn)
      resolve(code === null ? BY_SIGNAL + (constants.signals[signal] || 0) : code)
    })
  })
}
