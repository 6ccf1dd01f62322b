/** `mayfly pulse watch NAME`: shows each change of state of a monitor, and runs a command. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Command } from 'commander'
import type { PulseStatus } from '../../client/index.ts'
import { WATCH_VARIABLES } from '../../service/config.ts'
import { type Cli, client } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { harmless } from '../text.ts'
import { loadPulse } from '../vault/saved.ts'

const NO_WALLET = { MAYFLY_WALLET_URL: undefined, MAYFLY_WALLET_URL_FILE: undefined }

type Options = { exec?: string; once?: true }

export function addPulseWatch(parent: Command): void {
  client<Options>(
    parent
      .command('watch')
      .description('show when a monitor changes its state, and run a command')
      .argument('<name>', 'the monitor')
      .option('--exec <command>', 'a shell command to run at each change of state')
      .option('--once', 'stop after the first change'),
    {
      examples: [
        `mayfly pulse watch backup --exec 'mail -s "backup is $MAYFLY_PULSE_STATE" me < /dev/null'`,
      ],
      notes: `
The command gets MAYFLY_PULSE_NAME, MAYFLY_PULSE_STATE, MAYFLY_PULSE_PREVIOUS_STATE and
MAYFLY_PULSE_LAST_PING_AT in its environment, and no wallet. One command runs at a time.
`,
    },
    async (cli, { exec, once: isOnce }, [name]) => {
      const stream = loadPulse(cli, name).monitor.stream({ signal: cli.signal })
      let before: string | null = null
      try {
        for (;;) {
          const next = await stream.next()
          if (next.done) throw new CliError(`The monitor has ended: ${next.value}.`, EXIT.gone)
          const { status } = next.value
          if (status.state === before) continue
          showChange(cli, status, before)
          if (before !== null && exec !== undefined)
            await runCommand(cli, exec, { name, before, status })
          if (before !== null && isOnce) return EXIT.ok
          before = status.state
          cli.signal.throwIfAborted()
        }
      } finally {
        // An open stream would keep the process alive.
        await stream.return('').catch(() => undefined)
      }
    },
  )
}

function showChange(
  cli: Cli,
  { state, lastPingAt, stateChangedAt }: PulseStatus,
  before: string | null,
): void {
  const style = state === 'operational' ? 'green' : state === 'late' ? 'red' : 'yellow'
  const since = before === null ? '' : ` (was ${harmless(before)})`
  cli.answer(
    { state, previousState: before, lastPingAt, stateChangedAt },
    `${new Date(cli.now()).toLocaleTimeString('en-GB')}  ${cli.paint(style, harmless(state))}${since}\n`,
  )
}

async function runCommand(
  cli: Cli,
  command: string,
  { name, before, status }: { name: string; before: string; status: PulseStatus },
): Promise<void> {
  const { state, lastPingAt } = status
  const change = {
    [WATCH_VARIABLES.name]: name,
    [WATCH_VARIABLES.state]: state,
    [WATCH_VARIABLES.previousState]: before,
    [WATCH_VARIABLES.lastPingAt]: lastPingAt ?? '',
  }
  const child = spawn(command, {
    shell: true,
    // The command's output goes to stderr, since stdout has the changes of state.
    stdio: ['ignore', 2, 2],
    // The command must not get the wallet's secret.
    env: { ...process.env, ...NO_WALLET, ...change },
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  if (code !== 0) cli.warn(`The command ended with ${code ?? signal}.`)
}
