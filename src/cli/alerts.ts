/** `mayfly alerts NAME`: the destinations of alerts, and what was sent. */
import type { AlertSettings, AlertsSet, AlertsStatus } from '../client/index.ts'
import { ALERT_FORMATS, URL_FORMATS, type UrlFormat } from '../lib/alert-formats.ts'
import { type Cli, client } from './cli.ts'
import type { Given } from './declare.ts'
import { EXIT, misuse } from './exit.ts'
import { goesWith } from './options.ts'
import { away, columns } from './text.ts'
import { checkReceipt, clientOf, findSaved, isName, load, loadCatch } from './vault/saved.ts'

const TAKES = {
  '<name>': 'a monitor, or a whisper that was sent with --receipt',
  ...(Object.fromEntries(
    URL_FORMATS.map((format) => [`--${format} <url...>`, `add ${ALERT_FORMATS[format].adds}`]),
  ) as Record<`--${UrlFormat} <url...>`, string>),
  '--inbox <name...>': 'add this inbox, which is saved here and on the same service',
  '--opens-at': 'let those that are added say when a switch of the monitor opens, too',
  '--remove <which...>': 'remove this destination: its host, its id, or a saved inbox',
  '--test': 'test the destinations that receive no alerts yet',
  '--none': 'remove all destinations',
} as const

type Options = Given<typeof TAKES>
type Destinations = AlertsStatus['destinations']

export const addAlerts = client({
  command: 'alerts',
  says: 'show, add or remove the destinations that a monitor or a whisper notifies (docs/alerts.md)',
  takes: TAKES,
  examples: [
    'mayfly alerts backup --ntfy https://ntfy.sh/my-secret-topic --inbox hooks',
    'mayfly alerts backup --remove ntfy.sh',
  ],
  async run(cli, options) {
    const { name, opensAt, remove = [], test, none } = options
    const saved = load(cli, name)
    checkReceipt(name, saved.capability)
    const alerts = clientOf(cli, saved)
    if (!('alerts' in alerts)) {
      throw misuse(`${name} is an inbox, and this command takes a monitor or a whisper.`)
    }
    const added = addedBy(cli, options, saved.baseUrl)
    goesWith('a destination', added.length > 0, { '--opens-at': opensAt })
    const isChanged = added.length + remove.length > 0
    if ([isChanged, test, none].filter(Boolean).length > 1) {
      throw misuse('Give --test or --none alone.')
    }
    if (none) {
      await alerts.deleteAlerts()
      return cli.answer({ name, destinations: [] }, `${name} has no destinations.\n`)
    }
    const status = await alerts.alerts()
    const isTested = test && status.destinations.length > 0
    if (!isChanged && !isTested) return showStatus(cli, name, status)
    const kept = keptOf(cli, status.destinations, remove)
    const destinations = [...kept.map(({ id }) => ({ id })), ...added]
    if (destinations.length === 0) {
      throw misuse(
        `That removes the last destination of ${name}, so nothing was changed. If you mean that: --none`,
      )
    }
    return showSet(cli, name, await alerts.setAlerts({ destinations }))
  },
})

function addedBy(cli: Cli, options: Options, baseUrl: string): AlertSettings['destinations'] {
  const urls = URL_FORMATS.flatMap((format) =>
    (options[format] ?? []).map((url) => ({ url, format })),
  )
  const inboxes = (options.inbox ?? []).map((name) => {
    const saved = loadCatch(cli, name)
    if (saved.baseUrl !== baseUrl) {
      throw misuse(`${name} is an inbox of ${saved.baseUrl}, and not of ${baseUrl}.`)
    }
    const { publicId: inbox, ingestToken } = saved.capability
    return { inbox, ingestToken }
  })
  const asked = options.opensAt ? { opensAt: true } : {}
  return [...urls, ...inboxes].map((one) => ({ ...one, ...asked }))
}

/** Those that are not removed. */
function keptOf(cli: Cli, all: Destinations, remove: readonly string[]): Destinations {
  const removed = new Set(remove.map((which) => oneOf(cli, which, all)))
  return all.filter((one) => !removed.has(one))
}

function oneOf(cli: Cli, which: string, all: Destinations): Destinations[number] {
  const inbox = isName(which) ? findSaved(cli, which)?.capability.publicId : undefined
  const found = all.filter(({ id, host }) => which === id || which === host || inbox === host)
  const [one] = found
  if (one !== undefined && found.length === 1) return one
  const named = all.map(({ id, format, host }) => `${id} (${format}, ${host})`).join(', ')
  throw misuse(
    one === undefined
      ? `${which} is no destination. These are: ${named || 'none'}`
      : `${which} is there more than once. Name one by its id: ${named}`,
  )
}

function showSet(cli: Cli, name: string, set: AlertsSet): number {
  const { destinations } = set
  const rows = destinations.map(({ id, format, host, state, test, secret }) => [
    format,
    host,
    state,
    test === null ? '' : `test: ${test}`,
    secret ?? '',
    id,
  ])
  const isDone = destinations.every(({ state }) => state === 'active')
  const secrets = destinations.some(({ secret }) => secret !== null)
    ? '\nThe secrets sign the messages, and are shown this once.\n'
    : ''
  const advice = isDone
    ? ''
    : '\nA destination receives alerts only after it has answered a test. Give it its secret, then: --test\n'
  cli.answer(set, `${columns(rows)}${secrets}${advice}`)
  if (!destinations.some(({ state }) => state === 'active')) {
    cli.warn(`No destination of ${name} receives alerts yet.`)
  }
  return isDone ? EXIT.ok : EXIT.failed
}

function showStatus(cli: Cli, name: string, status: AlertsStatus): void {
  const { destinations, deliveries } = status
  if (destinations.length === 0) {
    return void cli.answer(status, `${name} has no destinations. --help lists what can be one.\n`)
  }
  const hosts = new Map(destinations.map(({ id, host }) => [id, host]))
  const told = deliveries.map((one) => [
    one.type,
    away(one.happenedAt, cli.now()),
    hosts.get(one.destinationId) ?? '',
    one.outcome ?? 'waits',
    one.nextTryAt === null ? '' : `next try ${away(one.nextTryAt, cli.now())}`,
  ])
  const named = columns(
    destinations.map(({ id, format, host, state }) => [format, host, state, id]),
  )
  cli.answer(status, told.length === 0 ? named : `${named}\n${columns(told)}`)
}
