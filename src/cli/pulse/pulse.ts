/** `mayfly pulse …`: the commands of a monitor, for its owner and for the job that pings. */
import type { Command } from 'commander'
import type { PulseSettings } from '../../client/index.ts'
import { client, wholeNumber } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { showMonitor } from '../status.ts'
import { examples } from '../text.ts'
import { loadPing, loadPulse } from '../vault/saved.ts'
import { addPulseHistory } from './history.ts'
import { addPulseRotate, refusedPing } from './rotate.ts'
import { addPulseRun } from './run.ts'
import { addPulseSchedule, addPulseSwitch } from './settings.ts'
import { addPulseWatch } from './watch.ts'

/** The service's maximum, for the error message. The service checks it too. */
const MAX_SECONDS = 604_800

export function addPulse(program: Command): void {
  const parent = program.command('pulse').description('ping, watch and set up a heartbeat monitor')
  addPing(parent)
  addPulseRun(parent)
  addPulseWatch(parent)
  addPulseHistory(parent)
  addSet(parent)
  addPulseSwitch(parent)
  addPulseSchedule(parent)
  addPulseRotate(parent)
}

/** `mayfly pulse ping`, and `mayfly ping`. */
export function addPing(parent: Command): void {
  parent
    .command('ping')
    .description('send one heartbeat')
    .argument('<name>', 'the monitor')
    .addHelpText('after', examples(`${parent.parent ? 'mayfly pulse' : 'mayfly'} ping backup`))
    .action(
      client(async (cli, _options, [name]) => {
        const { capability, baseUrl } = loadPing(cli, name)
        try {
          await cli.mayfly(baseUrl).pulse(capability).ping()
        } catch (error) {
          throw refusedPing(error, { ...cli, name })
        }
        cli.answer({ name, pinged: true }, 'Pinged.\n')
      }),
    )
}

type SetOptions = {
  title?: string
  description?: string
  interval?: string
  grace?: string
  public?: boolean
}

function addSet(parent: Command): void {
  parent
    .command('set')
    .description('change the settings of a monitor')
    .argument('<name>', 'the monitor')
    .option('--title <text>', 'its name on the shared status')
    .option('--description <text>', 'what it watches')
    .option('--interval <seconds>', 'how often a ping is expected')
    .option('--grace <seconds>', 'how late a ping may be')
    .option('--public', 'share its state with everybody who has its address')
    .option('--no-public', 'stop sharing it')
    .addHelpText('after', examples('mayfly pulse set backup --interval 3600 --grace 600 --public'))
    .action(
      client<SetOptions>(async (cli, options, [name]) => {
        const { capability, baseUrl } = loadPulse(cli, name)
        const settings = settingsOf(options)
        const status = await cli.mayfly(baseUrl).pulse(capability).update(settings)
        showMonitor(cli, baseUrl, status)
      }),
    )
}

function settingsOf(options: SetOptions): PulseSettings {
  const { title, description, interval, grace } = options
  const settings: PulseSettings = {
    ...(title === undefined ? {} : { name: title }),
    ...(description === undefined ? {} : { description }),
    ...(interval === undefined
      ? {}
      : {
          expectedIntervalSeconds: wholeNumber(interval, {
            option: '--interval',
            least: 20,
            most: MAX_SECONDS,
          }),
        }),
    ...(grace === undefined
      ? {}
      : { graceSeconds: wholeNumber(grace, { option: '--grace', least: 60, most: MAX_SECONDS }) }),
    ...(options.public === undefined ? {} : { publicStatusEnabled: options.public }),
  }
  if (Object.keys(settings).length > 0) return settings
  throw new CliError('There is nothing to change. --help lists the settings.', EXIT.usage)
}
