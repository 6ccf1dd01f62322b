/** `mayfly pulse …`: the commands of a monitor, for its owner and for the job that pings. */
import type { Command } from 'commander'
import type { PulseSettings, PulseStatus } from '../../client/index.ts'
import { sharedAddresses } from '../addresses.ts'
import { addPulseAlerts } from '../alerts.ts'
import { confirmDestroying } from '../ask.ts'
import { type Cli, client, wholeNumber } from '../cli.ts'
import { examples } from '../examples.ts'
import { CliError, EXIT } from '../exit.ts'
import { away, columns, harmless, span } from '../text.ts'
import { forget, loadPing, loadPulse } from '../vault/saved.ts'
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
  addStatus(parent)
  addPulseHistory(parent)
  addSet(parent)
  addPulseAlerts(parent)
  addPulseSwitch(parent)
  addPulseSchedule(parent)
  addPulseRotate(parent)
  addDestroy(parent)
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
        return EXIT.ok
      }),
    )
}

function addStatus(parent: Command): void {
  parent
    .command('status')
    .description('show the state, settings and counters of a monitor')
    .argument('<name>', 'the monitor')
    .addHelpText('after', examples('mayfly pulse status backup'))
    .action(
      client(async (cli, _options, [name]) => {
        const { capability, baseUrl } = loadPulse(cli, name)
        const status = await cli.mayfly(baseUrl).pulse(capability).status()
        showStatus(cli, baseUrl, status)
        return EXIT.ok
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
        showStatus(cli, baseUrl, status)
        return EXIT.ok
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

function addDestroy(parent: Command): void {
  parent
    .command('destroy')
    .description('destroy a monitor and its shared status, and remove it here')
    .argument('<name>', 'the monitor')
    .option('--yes', 'do not ask for confirmation; this cannot be undone')
    .addHelpText('after', examples('mayfly pulse destroy backup --yes'))
    .action(
      client<{ yes?: true }>(async (cli, { yes }, [name]) => {
        const { capability, baseUrl } = loadPulse(cli, name)
        if (!yes) await confirmDestroying(cli, name, `${name} and its shared status`)
        await cli.mayfly(baseUrl).pulse(capability).destroy()
        forget(cli, name)
        cli.answer({ name, destroyed: true }, `${name} is destroyed, and removed here.\n`)
        return EXIT.ok
      }),
    )
}

function showStatus(cli: Cli, baseUrl: string, status: PulseStatus): void {
  const shared = sharedAddresses(baseUrl, status)
  cli.answer({ ...status, ...shared }, columns(statusRows(status, { now: cli.now(), shared })))
}

/** `now` is in unix ms. What does not apply, such as a failure, has no row. */
export function statusRows(
  status: PulseStatus,
  { now, shared }: { now: number; shared: { statusUrl?: string; badgeUrl?: string } },
): [string, string][] {
  const { statusUrl, badgeUrl } = shared
  const { lastPingAt, lateAt, failure, lastRun } = status
  return [
    ['state', status.state],
    ...rowIf('failed', failure && `${away(failure.since, now)}${coded(failure.exitCode)}`),
    ['title', harmless(status.name) || '-'],
    ['last ping', lastPingAt === null ? 'never' : away(lastPingAt, now)],
    ...rowIf('last run', lastRun && ended(lastRun, now)),
    ['late', lateAt === null ? '-' : away(lateAt, now)],
    ['expects', expected(status)],
    ['pings', `${status.acceptedHeartbeatCount} of ${status.heartbeatLimit}`],
    ['shared', statusUrl ?? 'no'],
    ...rowIf('badge', badgeUrl ?? null),
    ...rowIf('Markdown', badgeUrl ? `[![state](${badgeUrl})](${statusUrl})` : null),
    ['ends', `${away(status.expiresAt, now)}, ${status.expiresAt}`],
  ]
}

const rowIf = (name: string, text: string | null): [string, string][] =>
  text === null ? [] : [[name, text]]

const coded = (exitCode: number | null) => (exitCode === null ? '' : `, exit code ${exitCode}`)

function ended(run: NonNullable<PulseStatus['lastRun']>, now: number): string {
  const { result, exitCode, endedAt, durationSeconds } = run
  const failed = `failed ${away(endedAt, now)}${coded(exitCode)}`
  const took = durationSeconds === null ? '' : `, after ${span(Math.round(durationSeconds))}`
  return `${result === 'failed' ? failed : `succeeded ${away(endedAt, now)}`}${took}`
}

function expected({ schedule, expectedIntervalSeconds, graceSeconds }: PulseStatus): string {
  return schedule === null
    ? `a ping every ${expectedIntervalSeconds} s, at most ${graceSeconds} s late`
    : `a ping at ${schedule.cron} (${schedule.timeZone}), at most ${schedule.graceSeconds} s late`
}
