/** `mayfly pulse …`: the commands of a monitor, for its owner and for the job that pings. */
import { client } from '../cli.ts'
import { type Add, declare, group } from '../declare.ts'
import { EXIT } from '../exit.ts'
import { loadPing, loadPulse, saveToken } from '../vault/saved.ts'
import { addPulseHistory } from './history.ts'
import { PING_MS, refusedPing } from './run.ts'
import { addPulseSchedule, addPulseSet, addPulseSwitch } from './settings.ts'

const ping = (example: string): Add =>
  client({
    command: 'ping',
    says: 'send one heartbeat',
    takes: { '<name>': 'the monitor' },
    examples: [example],
    async run(cli, { name }) {
      const { capability, baseUrl } = loadPing(cli, name)
      try {
        await cli.mayfly(baseUrl).pulse(capability).ping()
      } catch (error) {
        throw refusedPing(error, name)
      }
      cli.answer({ name, pinged: true }, 'Pinged.\n')
    },
  })

export const addPing = ping('mayfly ping backup')

const addRun: Add = (parent) =>
  declare(
    parent,
    {
      command: 'run',
      says: 'run a command, and report its start, its end and its exit code: success is a ping',
      takes: {
        '<name>': 'the monitor',
        '<command...>': 'the command and its arguments, after --',
        '--ping-only': 'only ping after a success, for one heartbeat a run instead of two',
      },
      examples: ['mayfly pulse run backup -- ./backup.sh --all'],
      notes: `
The command always runs first, even with an unknown name, an unreadable file, an old Node, or a service that
does not answer. It inherits this environment, wallet included, and receives all signals. \`pulse run\` ends with its exit
code, or with 128 plus the number of the signal that ended it. The monitor is told of the start beside the
command, and of the exit code after it, in at most ${PING_MS / 1000} seconds. If that fails, stderr says so and the exit code
stays the same.
`,
    },
    // Never reached through the entry, which has run the job.
    () => {
      process.stderr.write('This runs jobs as `mayfly pulse run` alone (bin/mayfly.mjs).\n')
      process.exitCode = EXIT.usage
    },
  )

const addRotate = client({
  command: 'rotate',
  says: 'replace the ping token of a monitor; the one before stops at once',
  takes: { '<name>': 'the monitor' },
  examples: [
    'mayfly pulse rotate backup',
    'mayfly export backup --ping-only --as curl --out backup.curl',
  ],
  async run(cli, { name }) {
    const { monitor, capability } = loadPulse(cli, name)
    const { publicId } = capability
    saveToken(cli, name, { publicId })
    const { token } = await monitor.rotateToken('ping')
    saveToken(cli, name, { publicId, pingToken: token })
    cli.answer(
      { name, rotated: true },
      `${name} has a new ping token, which is saved here. The one before pings no more.\nIts jobs elsewhere need the new one: mayfly export ${name} --ping-only\n`,
    )
  },
})

export const addPulse = group({ command: 'pulse', says: 'ping and set up a heartbeat monitor' }, [
  ping('mayfly pulse ping backup'),
  addRun,
  addPulseHistory,
  addPulseSet,
  addPulseSwitch,
  addPulseSchedule,
  addRotate,
])
