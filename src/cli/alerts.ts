/** `mayfly pulse alerts` and `mayfly whisper alerts`: who is told of what happens, and what was sent. */
import type { Command } from 'commander'
import type { AlertSettings, AlertsClient, AlertsSet, AlertsStatus } from '../client/index.ts'
import { type Cli, client } from './cli.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { loadCatch, loadPulse, loadReceipt } from './saved.ts'
import { away, columns } from './text.ts'

const FORMATS = ['standard', 'slack', 'discord', 'ntfy'] as const

type Options = { inbox?: string[]; test?: true; none?: true } & Partial<
  Record<(typeof FORMATS)[number], string[]>
>

/** Whose alerts a command is about, and who tells them. */
type Told = {
  description: string
  /** What the name stands for, in the help. */
  argument: string
  examples: readonly string[]
  /** The calls of what is saved under this name, and its service. @throws CliError if it has none. */
  open(cli: Cli, name: string): { alerts: AlertsClient; baseUrl: string }
}

/** `mayfly pulse alerts`. */
export const addPulseAlerts = (parent: Command): void =>
  addAlerts(parent, {
    description: 'show who is told of the changes of a monitor, or set it (docs/pulse-alerts.md)',
    argument: 'the monitor',
    examples: [
      'mayfly pulse alerts backup --ntfy https://ntfy.sh/my-secret-topic --inbox hooks',
      'mayfly pulse alerts backup',
    ],
    open(cli, name) {
      const { capability, baseUrl } = loadPulse(cli, name)
      return { alerts: cli.mayfly(baseUrl).pulse(capability), baseUrl }
    },
  })

/** `mayfly whisper alerts`. */
export const addWhisperAlerts = (parent: Command): void =>
  addAlerts(parent, {
    description: 'show who is told of each read of a whisper, or set it (docs/whisper.md)',
    argument: 'a whisper that was sent with --receipt',
    examples: [
      'mayfly whisper alerts contract --ntfy https://ntfy.sh/my-secret-topic --inbox hooks',
      'mayfly whisper alerts contract',
    ],
    open(cli, name) {
      const { baseUrl, ...holder } = loadReceipt(cli, name)
      return { alerts: cli.mayfly(baseUrl).whisperReceipt(holder), baseUrl }
    },
  })

function addAlerts(parent: Command, told: Told): void {
  parent
    .command('alerts')
    .description(told.description)
    .argument('<name>', told.argument)
    .option('--standard <url...>', 'tell this URL by Standard Webhooks')
    .option('--slack <url...>', 'tell this incoming webhook of Slack')
    .option('--discord <url...>', 'tell this webhook of Discord')
    .option('--ntfy <url...>', 'tell this topic of an ntfy server')
    .option('--inbox <name...>', 'tell this inbox, which is saved here and on the same service')
    .option('--test', 'test the destinations that no test has reached')
    .option('--none', 'tell nobody')
    .addHelpText('after', examples(...told.examples))
    .action(
      client<Options>(async (cli, options, [name]) => {
        const { alerts, baseUrl } = told.open(cli, name)
        const settings = settingsOf(cli, { options, baseUrl })
        const asked = [settings.destinations.length > 0, options.test, options.none]
        if (asked.filter(Boolean).length > 1) {
          throw new CliError(
            'Give destinations, --test or --none, and only one of them.',
            EXIT.usage,
          )
        }
        if (options.none) {
          await alerts.deleteAlerts()
          cli.answer({ name, destinations: [] }, `Nobody is told of ${name}.\n`)
          return EXIT.ok
        }
        if (!options.test && settings.destinations.length === 0) {
          showStatus(cli, await alerts.alerts())
          return EXIT.ok
        }
        const set = options.test ? await alerts.testAlerts() : await alerts.setAlerts(settings)
        showSet(cli, set)
        return set.destinations.every(({ state }) => state === 'active') ? EXIT.ok : EXIT.failed
      }),
    )
}

function settingsOf(
  cli: Cli,
  { options, baseUrl }: { options: Options; baseUrl: string },
): AlertSettings {
  const urls = FORMATS.flatMap((format) => (options[format] ?? []).map((url) => ({ url, format })))
  const inboxes = (options.inbox ?? []).map((name) => {
    const saved = loadCatch(cli, name)
    if (saved.baseUrl !== baseUrl) {
      throw new CliError(
        `${name} is an inbox of ${saved.baseUrl}, and not of ${baseUrl}.`,
        EXIT.usage,
      )
    }
    const { publicId: inbox, ingestToken } = saved.capability
    return { inbox, ingestToken }
  })
  return { destinations: [...urls, ...inboxes] }
}

function showSet(cli: Cli, set: AlertsSet): void {
  if (set.destinations.length === 0) return void cli.answer(set, 'Nobody is told.\n')
  const rows = set.destinations.map(({ format, host, state, test, secret }) => [
    ...[format, host, state, test === null ? '' : `test: ${test}`, secret ?? ''],
  ])
  const isTold = set.destinations.every(({ state }) => state === 'active')
  const advice = isTold
    ? ''
    : '\nA destination is told nothing before it has answered a test. Give it its secret, then: --test\n'
  cli.answer(set, columns(rows) + advice)
}

function showStatus(cli: Cli, status: AlertsStatus): void {
  const { destinations, deliveries } = status
  if (destinations.length === 0) return void cli.answer(status, 'Nobody is told.\n')
  const hosts = new Map(destinations.map(({ id, host }) => [id, host]))
  const told = deliveries.map((one) => [
    ...[one.type, away(one.happenedAt, cli.now()), hosts.get(one.destinationId) ?? ''],
    one.outcome ?? 'waits',
    one.nextTryAt === null ? '' : `next try ${away(one.nextTryAt, cli.now())}`,
  ])
  const named = columns(destinations.map(({ format, host, state }) => [format, host, state]))
  cli.answer(status, told.length === 0 ? named : `${named}\n${columns(told)}`)
}
