/** `mayfly pulse run NAME -- COMMAND`: runs a job, and pings when it has succeeded. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import type { Command } from 'commander'
import type { PulseClient } from '../client/index.ts'
import { wait } from '../client/wait.ts'
import { type Cli, client } from './cli.ts'
import { examples } from './examples.ts'
import { CliError, EXIT, endingOf } from './exit.ts'
import { loadPulse } from './saved.ts'

/** A ping that is lost or refused for the moment is sent again this often. */
const PING_TRIES = 4
/** What a shell answers for a command that it cannot find or run. */
const NOT_FOUND = 127
const NOT_RUNNABLE = 126
const BY_SIGNAL = 128

export function addPulseRun(parent: Command): void {
  parent
    .command('run')
    .description('run a command, and ping when it ends with 0')
    .argument('<name>', 'the monitor')
    .argument('<command...>', 'after --, the command with its arguments')
    .addHelpText(
      'after',
      `${examples('mayfly pulse run backup -- ./backup.sh --all')}
The command gets this environment as it is, the wallet too. Its exit code is that of all, and signals
are passed on to it. A ping that cannot be sent is
told on stderr, and changes nothing of that.
`,
    )
    .action(
      client(async (cli, _options, name: string, ...command: string[]) => {
        const { capability, baseUrl } = loadPulse(cli, name)
        const code = await runJob(cli, command)
        if (code === 0) await ping(cli, cli.mayfly(baseUrl).pulse(capability), baseUrl)
        return code
      }),
    )
}

async function runJob(cli: Cli, [file = '', ...args]: string[]): Promise<number> {
  const job = spawn(file, args, { stdio: 'inherit' })
  cli.onSignal((signal) => {
    // On a terminal, Ctrl-C reaches the job by itself.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) job.kill(signal)
  })
  try {
    return await endOf(job)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    const isMissing = code === 'ENOENT'
    throw new CliError(
      `${file} cannot be run: ${isMissing ? 'there is no such command' : code}.`,
      isMissing ? NOT_FOUND : NOT_RUNNABLE,
    )
  }
}

async function endOf(job: ChildProcess): Promise<number> {
  const [code, signal] = (await once(job, 'exit')) as [number | null, NodeJS.Signals | null]
  return code ?? BY_SIGNAL + (signal === null ? 0 : constants.signals[signal])
}

async function ping(cli: Cli, monitor: PulseClient, url: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await monitor.ping()
    } catch (error) {
      const ending = endingOf(error, url)
      if (ending === null) throw error
      if (ending.code === EXIT.gone || tries === PING_TRIES) {
        cli.note(`The command succeeded, and the ping failed. ${ending.sentence}`)
        return
      }
      await wait(2 ** (tries - 1))
    }
  }
}
