/** `mayfly pulse alerts`: who is told of a monitor's changes, and what was sent. */
import type { Command } from 'commander'
import type { AlertSettings, AlertsSet, AlertsStatus } from '../client/index.ts'
import { type Cli, client } from './cli.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { loadCatch, loadPulse } from './saved.ts'
import { away, columns } from './text.ts'

const FORMATS = ['standard', 'slack', 'discord', 'ntfy'] as const

type Options = { inbox?: string[]; test?: true; none?: true } & Partial<
  Record<(typeof FORMATS)[number], string[]>
>

export function addPulseAlerts(parent: Command): void {
  parent
    .command('alerts')
    .description('show who is told of the changes of a monitor, or set it (docs/pulse-alerts.md)')
    .argument('<name>', 'the monitor')
    .option('--standard <url...>', 'tell this URL by Standard Webhooks')
    .option('--slack <url...>', 'tell this incoming webhook of Slack')
    .option('--discord <url...>', 'tell this webhook of Discord')
    .option('--ntfy <url...>', 'tell this topic of an ntfy server')
    .option('--inbox <name...>', 'tell this inbox, which is saved here and on the same service')
    .option('--test', 'test the destinations that no test has reached')
    .option('--none', 'tell nobody')
    .addHelpText(
      'after',
      examples(
        'mayfly pulse alerts backup --ntfy https://ntfy.sh/my-secret-topic --inbox hooks',
        'mayfly pulse alerts backup',
      ),
    )
    .action(
      client<Options>(async (cli, options, [name]) => {
        const { capability, baseUrl } = loadPulse(cli, name)
        const monitor = cli.mayfly(baseUrl).pulse(capability)
        const settings = settingsOf(cli, { options, baseUrl })
        const asked = [settings.destinations.length > 0, options.test, options.none]
        if (asked.filter(Boolean).length > 1) {
          throw new CliError(
            'Give destinations, --test or --none, and only one of them.',
            EXIT.usage,
          )
        }
        if (options.none) {
          await monitor.deleteAlerts()
          cli.answer({ name, destinations: [] }, `Nobody is told of ${name}.\n`)
          return EXIT.ok
        }
        if (!options.test && settings.destinations.length === 0) {
          showStatus(cli, await monitor.alerts())
          return EXIT.ok
        }
        const set = options.test ? await monitor.testAlerts() : await monitor.setAlerts(settings)
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
