/** `mayfly gate …`: the operator's commands for GATE, on the store of the running server. */
import { parseArgs } from 'node:util'
import { type Config, ConfigError, readConfig } from '../../config.ts'
import { StoreUnusable } from '../../db/db.ts'
import { openStore } from '../../db/open.ts'
import { openProvider } from '../../gate/open.ts'
import {
  createProjects,
  type ProjectDetails,
  ProjectError,
  type Projects,
} from '../../gate/projects.ts'
import { isRouteId, parseRouteSpec, type RouteSpec } from '../../gate/route-spec.ts'
import { MAX_CREDITS } from '../../gate/store.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { isId } from '../../lib/ids.ts'
import { createSimulator } from '../../lightning/simulator.ts'
import { LnurlError } from '../../protocol/lnurl.ts'
import { bindStore } from '../../store-identity.ts'

const USAGE = `Usage: mayfly gate <command> [--json]

  project add --address <name@domain> [--route <route>]… [--credits <n>]
                                    register an API; prints its capability, once
  project list                      all projects
  project show <projectId>          one project, with routes, credits and intents
  project suspend <projectId>       no new intents; what was offered is still honoured
  project resume <projectId>        new intents again
  project rotate-key <projectId>    a new capability; the old one ends at once
  route add <projectId> <route>     a priced route
  route remove <projectId> <routeId>
  credits grant <projectId> <n>     each authorization takes one
  payment list                      payments that are proven and were not honoured
  payment honour <intentId>         lets its payer in once more, or has the provider asked anew

A route reads <id>=<method>:<path>:<sats>, such as render=POST:/render/*:50. In the path, * is one
segment and ** the rest.

For the server of a project there are intent, prove, poll and verify: mayfly gate --help.
`

/** The arguments are not what a command takes. */
class UsageError extends Error {
  override name = 'UsageError'
}

/** What a command says: to people, and with --json. */
type Said = { text: string; json: unknown }
type Act = (projects: Projects) => Promise<Said>

export async function gateCommand(args: string[]): Promise<number> {
  if (args.length === 0 || args[0] === 'help' || args.includes('--help')) {
    process.stderr.write(USAGE)
    return 0
  }
  try {
    const { act, isJson } = parse(args)
    const { text, json } = await withProjects(act)
    process.stdout.write(isJson ? `${JSON.stringify(json)}\n` : text)
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\n\n${USAGE}`)
      return 2
    }
    if (!isForTheOperator(error)) throw error
    process.stderr.write(`${sentence(error)}\n`)
    return 1
  }
}

function parse(args: string[]): { act: Act; isJson: boolean } {
  const { values, positionals } = readArgs(args)
  const isJson = values.json ?? false
  const [noun = '', verb = '', ...rest] = positionals
  const command = `${noun} ${verb}`
  if (command !== 'project add') {
    const stray = ['address', 'route', 'credits'].find((name) => name in values)
    if (stray) throw new UsageError(`--${stray} belongs to \`project add\`.`)
  }
  switch (command) {
    case 'project add':
      return { act: addProject(values, takes(rest, 0)), isJson }
    case 'project list':
      takes(rest, 0)
      return { act: listProjects, isJson }
    case 'project show':
      return { act: showProject(projectIdOf(takes(rest, 1))), isJson }
    case 'project suspend':
      return { act: suspendProject(projectIdOf(takes(rest, 1))), isJson }
    case 'project resume':
      return { act: resumeProject(projectIdOf(takes(rest, 1))), isJson }
    case 'project rotate-key':
      return { act: rotateKey(projectIdOf(takes(rest, 1))), isJson }
    case 'route add':
      return { act: addRoute(projectIdOf(takes(rest, 2)), routeOf(rest[1])), isJson }
    case 'route remove':
      return { act: removeRoute(projectIdOf(takes(rest, 2)), rest[1] ?? ''), isJson }
    case 'credits grant':
      return { act: grantCredits(projectIdOf(takes(rest, 2)), creditsOf(rest[1], 1)), isJson }
    case 'payment list':
      takes(rest, 0)
      return { act: listPayments, isJson }
    case 'payment honour':
      return { act: honourPayment(intentIdOf(takes(rest, 1))), isJson }
    default:
      throw new UsageError(`There is no command \`${command.trim()}\`.`)
  }
}

type Values = { address?: string; route?: string[]; credits?: string; json?: boolean }

function readArgs(args: string[]): { values: Values; positionals: string[] } {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        address: { type: 'string' },
        route: { type: 'string', multiple: true },
        credits: { type: 'string' },
        json: { type: 'boolean' },
      },
    })
  } catch (error) {
    throw new UsageError(`${messageOf(error)}.`)
  }
}

function addProject(values: Values, _none: string[]): Act {
  const { address } = values
  if (address === undefined) throw new UsageError('--address <name@domain> is missing.')
  const routes = (values.route ?? []).map(routeOf)
  const credits = creditsOf(values.credits ?? '0', 0)
  return async (projects) => {
    const added = await projects.add({ address, routes, credits })
    const how =
      added.verification === 'provider'
        ? 'provider (it says itself when it was paid)'
        : 'preimage (payers need a wallet that shows the preimage)'
    return {
      json: added,
      text: `Project       ${added.projectId}\nVerification  ${how}\nCapability    ${added.capability}\n\nThe capability is shown this once. Keep it on the server of the API.\n`,
    }
  }
}

const listProjects: Act = async (projects) => {
  const all = await projects.list()
  const lines = all.map(
    ({ projectId, address, credits, isSuspended }) =>
      `${projectId}  ${isSuspended ? 'suspended' : 'active   '}  ${String(credits).padStart(8)} credits  ${address}\n`,
  )
  return {
    json: all.map((project) => ({ ...project, createdAt: rfc3339(project.createdAt) })),
    text: lines.length > 0 ? lines.join('') : 'There are no projects.\n',
  }
}

const showProject =
  (projectId: string): Act =>
  async (projects) => {
    const project = await projects.show(projectId)
    return {
      json: { ...project, createdAt: rfc3339(project.createdAt) },
      text: describe(project),
    }
  }

const suspendProject =
  (projectId: string): Act =>
  async (projects) => {
    await projects.suspend(projectId)
    return {
      json: { projectId, isSuspended: true },
      text: `${projectId} is suspended. Intents that were offered before are still honoured.\n`,
    }
  }

const resumeProject =
  (projectId: string): Act =>
  async (projects) => {
    await projects.resume(projectId)
    return { json: { projectId, isSuspended: false }, text: `${projectId} is active.\n` }
  }

const rotateKey =
  (projectId: string): Act =>
  async (projects) => {
    const capability = await projects.rotateKey(projectId)
    return {
      json: { projectId, capability },
      text: `Capability    ${capability}\n\nIt is shown this once. The old one opens nothing any more.\n`,
    }
  }

const addRoute =
  (projectId: string, route: RouteSpec): Act =>
  async (projects) => {
    await projects.addRoute(projectId, route)
    return { json: { projectId, ...route }, text: `${projectId} has the route ${shown(route)}.\n` }
  }

function removeRoute(projectId: string, routeId: string): Act {
  if (!isRouteId(routeId)) throw new UsageError('The id of a route is letters, digits, - and _.')
  return async (projects) => {
    await projects.removeRoute(projectId, routeId)
    return {
      json: { projectId, routeId },
      text: `${projectId} has no route ${routeId} any more. Its open intents are still honoured.\n`,
    }
  }
}

const grantCredits =
  (projectId: string, granted: number): Act =>
  async (projects) => {
    const credits = await projects.grant(projectId, granted)
    return { json: { projectId, credits }, text: `${projectId} has ${credits} credits.\n` }
  }

const listPayments: Act = async (projects) => {
  const all = await projects.unhonoured()
  const lines = all.map(
    ({ noticedAt, intentId, paymentHash, amountSats, reason }) =>
      `${rfc3339(noticedAt)}  ${intentId}  ${String(amountSats).padStart(8)} sat  ${reason}\n  payment hash ${paymentHash}\n`,
  )
  return {
    json: all.map((payment) => ({ ...payment, noticedAt: rfc3339(payment.noticedAt) })),
    text: lines.length > 0 ? lines.join('') : 'Every proven payment was honoured.\n',
  }
}

const honourPayment =
  (intentId: string): Act =>
  async (projects) => {
    const honoured = await projects.honour(intentId)
    const text =
      honoured === 'fresh receipt'
        ? 'The payer repeats the request with the same proof, and is let in once more.\n'
        : 'The provider may be asked for 24 hours more. The payer repeats the request with X-Gate-Intent.\n'
    return { json: { intentId, honoured }, text }
  }

function describe(project: ProjectDetails): string {
  const { projectId, address, verification, credits, isSuspended, openIntents } = project
  const routes = project.routes.map((route) => `  ${shown(route)}\n`).join('')
  return `Project       ${projectId}${isSuspended ? ' (suspended)' : ''}
Address       ${address}
Verification  ${verification}
Credits       ${credits}
Intents       ${openIntents} open, ${project.authorizedIntents} authorized
Routes
${routes === '' ? '  none\n' : routes}`
}

const shown = ({ routeId, method, pattern, priceSats }: RouteSpec): string =>
  `${routeId}=${method}:${pattern}:${priceSats}`

function takes(rest: string[], count: number): string[] {
  if (rest.length !== count) {
    throw new UsageError(
      `That command takes ${['no arguments', 'one argument', 'two arguments'][count]}.`,
    )
  }
  return rest
}

function projectIdOf([projectId = '']: string[]): string {
  if (!isId('gate_project', projectId)) throw new UsageError('A project id is gate_project_….')
  return projectId
}

function intentIdOf([intentId = '']: string[]): string {
  if (!isId('gate_intent', intentId)) throw new UsageError('An intent id is gate_intent_….')
  return intentId
}

function routeOf(text = ''): RouteSpec {
  try {
    return parseRouteSpec(text)
  } catch (error) {
    throw new UsageError(`${capitalised(error instanceof Error ? error.message : '')}.`)
  }
}

function creditsOf(text: string | undefined, least: number): number {
  const credits = /^\d{1,10}$/.test(text ?? '') ? Number(text) : -1
  if (credits < least || credits > MAX_CREDITS) {
    throw new UsageError(`Credits are a whole number from ${least} to ${MAX_CREDITS}.`)
  }
  return credits
}

async function withProjects<T>(act: (projects: Projects) => Promise<T>): Promise<T> {
  const config = readConfig()
  const db = await openStore(config.databaseUrl)
  try {
    const isSimulator = config.lightningUrl.kind === 'simulator'
    const network = await bindStore(db, {
      backend: config.lightningUrl.kind,
      network: isSimulator ? 'regtest' : config.network,
    })
    const { gateAllowedHosts: allowed, quoteSeconds } = config
    const clock = systemClock
    const simulator = isSimulator ? await createSimulator({ db, clock }) : null
    const provider = openProvider({ simulator, allowed, network, clock, quoteSeconds })
    try {
      const result = await act(createProjects({ db, provider, allowed, clock }))
      remindOfTheSwitch(config)
      return result
    } finally {
      await provider.close()
    }
  } finally {
    await db.close()
  }
}

function remindOfTheSwitch({ gate }: Config): void {
  if (gate === 'on') return
  process.stderr.write('MAYFLY_GATE is off here: the service offers GATE only when it is `on`.\n')
}

function isForTheOperator(error: unknown): error is Error {
  return [ConfigError, StoreUnusable, ProjectError, LnurlError].some(
    (kind) => error instanceof kind,
  )
}

function sentence(error: Error): string {
  return error instanceof LnurlError
    ? `The address cannot be used: ${error.message}.`
    : error.message
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
