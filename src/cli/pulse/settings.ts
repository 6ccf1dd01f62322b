/** `mayfly pulse schedule`, a line of crontab instead of an interval, and `switch`, which binds a whisper to its silence. */
import type { Command } from 'commander'
import { client, wholeNumber } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { examples } from '../text.ts'
import { loadPulse } from '../vault/saved.ts'

type Options = { timeZone?: string; grace?: string; off?: true }

/** The longest grace, for the error message. The service checks it too. */
const MAX_GRACE_SECONDS = 604_800

export function addPulseSchedule(parent: Command): void {
  parent
    .command('schedule')
    .description('expect pings at the times of a crontab line, summer time included')
    .argument('<name>', 'the monitor')
    .argument('[cron]', 'its five fields, such as "0 3 * * 1-5"')
    .option(
      '--time-zone <name>',
      'the time zone of the job, such as Europe/Berlin; by default here',
    )
    .option('--grace <seconds>', 'how late a ping may be', '900')
    .option('--off', 'return to the interval')
    .addHelpText(
      'after',
      examples(
        'mayfly pulse schedule backup "0 3 * * 1-5" --time-zone Europe/Berlin',
        'mayfly pulse schedule backup --off',
      ),
    )
    .action(
      client<Options, [string, cron?: string]>(async (cli, options, [name, cron]) => {
        const { capability, baseUrl } = loadPulse(cli, name)
        const monitor = cli.mayfly(baseUrl).pulse(capability)
        if (options.off) {
          await monitor.deleteSchedule()
          cli.answer({ name, schedule: null }, `${name} expects pings by its interval again.\n`)
          return EXIT.ok
        }
        if (cron === undefined) {
          throw new CliError('Give the five fields of cron, in quotes, or --off.', EXIT.usage)
        }
        const schedule = await monitor.setSchedule({
          cron,
          timeZone: options.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
          graceSeconds: wholeNumber(options.grace ?? '900', {
            option: '--grace',
            least: 60,
            most: MAX_GRACE_SECONDS,
          }),
        })
        const { nextExpectedAt } = await monitor.status()
        const next = nextExpectedAt === null ? 'after its first ping' : `next at ${nextExpectedAt}`
        cli.answer(
          { name, schedule, nextExpectedAt },
          `${name} expects a ping at ${schedule.cron} (${schedule.timeZone}), at most ${schedule.graceSeconds} s late: ${next}.\n`,
        )
      }),
    )
}

export function addPulseSwitch(parent: Command): void {
  parent
    .command('switch')
    .description('show the switch of a monitor, which opens whispers when the monitor falls silent')
    .argument('<name>', 'the monitor')
    .option('--retire', 'let nothing more be bound to it; what is bound stays bound')
    .addHelpText(
      'after',
      examples('mayfly pulse switch alive', 'mayfly whisper send will.txt --when-late alive'),
    )
    .action(
      client<{ retire?: true }>(async (cli, { retire }, [name]) => {
        const { capability, baseUrl } = loadPulse(cli, name)
        const monitor = cli.mayfly(baseUrl).pulse(capability)
        if (retire) {
          await monitor.retireSwitch()
          cli.answer({ name, retired: true }, `The switch of ${name} is retired.\n`)
          return EXIT.ok
        }
        const { switchId } = await monitor.makeSwitch()
        cli.answer(
          { name, switchId },
          `${switchId}\n\nEveryone who has this id can buy a whisper that opens when ${name} falls silent. It reveals nothing else about the monitor.\n`,
        )
      }),
    )
}
