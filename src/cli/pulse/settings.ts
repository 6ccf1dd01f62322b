/** `mayfly pulse set`, `schedule`, a line of crontab instead of an interval, and `switch`, which binds a whisper to its silence. */
import type { PulseSettings } from '../../client/index.ts'
import {
  GRACE_SECONDS,
  INTERVAL_SECONDS,
  SCHEDULE_GRACE_SECONDS,
} from '../../lib/monitor-bounds.ts'
import { client } from '../cli.ts'
import { whole } from '../declare.ts'
import { EXIT, misuse } from '../exit.ts'
import { partOf, showMonitor } from '../status.ts'
import { loadPulse } from '../vault/saved.ts'

const GRACE = [
  'how late a ping may be',
  whole(GRACE_SECONDS.minimum, GRACE_SECONDS.maximum),
] as const

export const addPulseSet = client({
  command: 'set',
  says: 'change the settings of a monitor',
  takes: {
    '<name>': 'the monitor',
    '--title <text>': 'its name on the shared status',
    '--description <text>': 'what it watches',
    '--interval <seconds>': [
      'how often a ping is expected',
      whole(INTERVAL_SECONDS.minimum, INTERVAL_SECONDS.maximum),
    ],
    '--grace <seconds>': GRACE,
    '--public': 'share its state with everybody who has its address',
    '--no-public': 'stop sharing it',
  },
  examples: ['mayfly pulse set backup --interval 3600 --grace 600 --public'],
  async run(cli, { name, title, description, interval, grace, public: isPublic }) {
    const { monitor, baseUrl } = loadPulse(cli, name)
    // JSON leaves out what is undefined.
    const settings = {
      name: title,
      description,
      graceSeconds: grace,
      expectedIntervalSeconds: interval,
      publicStatusEnabled: isPublic,
    }
    if (Object.values(settings).every((value) => value === undefined)) {
      throw misuse('There is nothing to change. --help lists the settings.')
    }
    showMonitor(cli, baseUrl, await monitor.update(settings as PulseSettings))
  },
})

export const addPulseSchedule = client({
  command: 'schedule',
  says: 'expect pings at the times of a crontab line, summer time included',
  takes: {
    '<name>': 'the monitor',
    '[cron]': 'its five fields, such as "0 3 * * 1-5"',
    '--time-zone <name>': 'the time zone of the job, such as Europe/Berlin; by default here',
    '--grace <seconds>': [...GRACE, SCHEDULE_GRACE_SECONDS],
    '--off': 'return to the interval',
  },
  examples: [
    'mayfly pulse schedule backup "0 3 * * 1-5" --time-zone Europe/Berlin',
    'mayfly pulse schedule backup --off',
  ],
  async run(cli, { name, cron, timeZone, grace: graceSeconds, off = false }) {
    const { monitor } = loadPulse(cli, name)
    if ((cron === undefined) !== off) {
      throw misuse('Give the five fields of cron, in quotes, or --off.')
    }
    if (cron === undefined) {
      await partOf(monitor, monitor.deleteSchedule())
      cli.answer({ name, schedule: null }, `${name} expects pings by its interval again.\n`)
      return EXIT.ok
    }
    const schedule = await monitor.setSchedule({
      cron,
      timeZone: timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
      graceSeconds,
    })
    const { nextExpectedAt } = await monitor.status()
    const next = nextExpectedAt === null ? 'after its first ping' : `next at ${nextExpectedAt}`
    cli.answer(
      { name, schedule, nextExpectedAt },
      `${name} expects a ping at ${schedule.cron} (${schedule.timeZone}), at most ${schedule.graceSeconds} s late: ${next}.\n`,
    )
  },
})

export const addPulseSwitch = client({
  command: 'switch',
  says: 'show the switch of a monitor, which opens whispers when the monitor falls silent',
  takes: {
    '<name>': 'the monitor',
    '--retire': 'let nothing more be bound to it; what is bound stays bound',
  },
  examples: ['mayfly pulse switch alive', 'mayfly whisper send will.txt --when-late alive'],
  async run(cli, { name, retire }) {
    const { monitor } = loadPulse(cli, name)
    if (retire) {
      await partOf(monitor, monitor.retireSwitch())
      cli.answer({ name, retired: true }, `The switch of ${name} is retired.\n`)
      return EXIT.ok
    }
    const { switchId } = await monitor.makeSwitch()
    cli.answer(
      { name, switchId },
      `${switchId}\n\nEveryone who has this id can buy a whisper that opens when ${name} falls silent. It reveals nothing else about the monitor.\n`,
    )
  },
})
