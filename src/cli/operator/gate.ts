/** `mayfly gate project|route|credits|payment …`: GATE on the store of the service. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { ProjectDetails, Projects } from '../../gate/projects.ts'
import { isRouteId, parseRouteSpec, type RouteSpec } from '../../gate/route-spec.ts'
import { MAX_CREDITS } from '../../gate/store.ts'
import { rfc3339 } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { isId } from '../../lib/ids.ts'
import { readOptions } from '../../service/config.ts'
import { whole } from '../options.ts'
import { type Answer, operator } from './command.ts'

const ROUTE_FORM = `
A route is <id>=<method>:<path>:<sats>. In the path, * is one segment and **, at the end, is the rest.
`

export function addGate(program: Command): void {
  const gate = program
    .command('gate', { hidden: !isGateOn() })
    .description('GATE (private beta): the APIs that sell requests, their prices and credits')
  addProjects(gate.command('project').description('register and manage an API'))
  addRoutes(gate.command('route').description('set the prices of a project'))
  addCredits(gate.command('credits').description('set how many requests a project may sell'))
  addPayments(gate.command('payment').description('find payments that were not honoured'))
}

/** Elsewhere its commands work, and the help of all leaves them out. */
function isGateOn(): boolean {
  try {
    return readOptions(['gate']).gate === 'on'
  } catch {
    // A setting is wrong, which the command says that runs.
    return false
  }
}

type Named = [parent: Command, name: string, description: string]

/**
 * Adds a command. Its arguments are read before it runs, and refuse what cannot be meant. The store loads the server
 * with it, so only a running command opens it.
 */
function add<Given extends readonly unknown[], Options = object>(
  [parent, name, description]: Named,
  {
    takes = [],
    example = '',
    notes = '',
    mayCreate = false,
  }: { takes?: Argument[]; example?: string; notes?: string; mayCreate?: boolean },
  work: (projects: Projects, args: Given, options: Options) => Promise<Answer>,
): Command {
  const command = parent.command(name).description(description)
  for (const argument of takes) command.addArgument(argument)
  return operator<Options, Given>(
    command,
    { examples: [`mayfly gate ${parent.name()} ${name} ${example}`.trim()], notes: notes },
    async (output, options, args) => {
      const { withProjects } = await import('./gate-projects.ts')
      return withProjects(output, {
        work: (projects) => work(projects, args, options),
        mayCreate,
      })
    },
  )
}

/** An argument that `read` takes, or says why not. */
const argument = (name: string, description: string, read: (text: string) => unknown): Argument =>
  new Argument(name, description).argParser(read)

const PROJECT = () =>
  argument('<project>', 'its id, gate_project_…', idOf('gate_project', 'project'))
const THE_PROJECT = 'gate_project_…'

function addProjects(project: Command): void {
  type New = { address: string; route?: RouteSpec[]; credits: number }
  const example = '--address alice@example.com --route ping=GET:/ping:1 --credits 100'
  add<[], New>(
    [project, 'add', 'register an API, and print its capability once'],
    // An operator may register an API before the first start.
    { example, notes: ROUTE_FORM, mayCreate: true },
    async (projects, _none, { address, route: routes = [], credits }) => {
      const added = await projects.add({ address, routes, credits })
      const how =
        added.verification === 'provider'
          ? 'provider (it confirms its payments itself)'
          : 'preimage (payers need a wallet that shows the preimage)'
      return {
        json: added,
        text: `Project       ${added.projectId}
Verification  ${how}
Capability    ${added.capability}

The capability is shown only once. Keep it on the server of the API.
`,
      }
    },
  )
    .requiredOption('--address <name@domain>', 'the Lightning Address that is paid')
    .addOption(
      new Option('--route <route>', 'a route with its price; may be given several times').argParser<
        RouteSpec[]
      >((text, before = []) => [...before, readRoute(text)]),
    )
    .option('--credits <count>', 'how many requests it may sell', whole(0, MAX_CREDITS), 0)
  add([project, 'list', 'list all projects'], {}, async (projects) => {
    const all = await projects.list()
    const lines = all.map(
      ({ projectId, address, credits, isSuspended }) =>
        `${projectId}  ${isSuspended ? 'suspended' : 'active   '}  ${String(credits).padStart(8)} credits  ${address}\n`,
    )
    return {
      json: all.map((each) => ({ ...each, createdAt: rfc3339(each.createdAt) })),
      text: lines.length > 0 ? lines.join('') : 'There are no projects.\n',
    }
  })
  const addOfOne = (
    name: string,
    description: string,
    work: (projects: Projects, projectId: string) => Promise<Answer>,
  ): Command =>
    add<[string]>(
      [project, name, description],
      { takes: [PROJECT()], example: THE_PROJECT },
      (projects, [projectId]) => work(projects, projectId),
    )
  addOfOne(
    'show',
    'show a project with its routes, credits and intents',
    async (projects, projectId) => {
      const details = await projects.show(projectId)
      return {
        json: { ...details, createdAt: rfc3339(details.createdAt) },
        text: describe(details),
      }
    },
  )
  addOfOne(
    'suspend',
    'stop new intents; those that were made before are still honoured',
    async (projects, projectId) => {
      await projects.suspend(projectId)
      return {
        json: { projectId, isSuspended: true },
        text: `${projectId} is suspended. Intents that were made before are still honoured.\n`,
      }
    },
  )
  addOfOne('resume', 'allow new intents again', async (projects, projectId) => {
    await projects.resume(projectId)
    return { json: { projectId, isSuspended: false }, text: `${projectId} is active.\n` }
  })
  addOfOne(
    'rotate-key',
    'print a new capability; the old one stops working at once',
    async (projects, projectId) => {
      const capability = await projects.rotateKey(projectId)
      return {
        json: { projectId, capability },
        text: `Capability    ${capability}\n\nIt is shown only once. The old one no longer works.\n`,
      }
    },
  )
}

function addRoutes(route: Command): void {
  const spec = argument('<route>', '<id>=<method>:<path>:<sats>', readRoute)
  add<[string, RouteSpec]>(
    [route, 'add', 'add a route with its price'],
    {
      takes: [PROJECT(), spec],
      notes: ROUTE_FORM,
      example: `${THE_PROJECT} 'render=POST:/render/*:50'`,
    },
    async (projects, [projectId, added]) => {
      await projects.addRoute(projectId, added)
      return {
        json: { projectId, ...added },
        text: `${projectId} has the route ${routeText(added)}.\n`,
      }
    },
  )
  add<[string, string]>(
    [route, 'remove', 'remove a route; its open intents are still honoured'],
    {
      takes: [PROJECT(), argument('<routeId>', 'the id of the route', readRouteId)],
      example: `${THE_PROJECT} render`,
    },
    async (projects, [projectId, routeId]) => {
      await projects.removeRoute(projectId, routeId)
      return {
        json: { projectId, routeId },
        text: `${projectId} has no route ${routeId} any more. Its open intents are still honoured.\n`,
      }
    },
  )
}

function addCredits(credits: Command): void {
  const count = argument('<count>', 'how many', whole(1, MAX_CREDITS))
  add<[string, number]>(
    [credits, 'grant', 'add credits; each authorized request uses one'],
    { takes: [PROJECT(), count], example: `${THE_PROJECT} 100` },
    async (projects, [projectId, granted]) => {
      const left = await projects.grant(projectId, granted)
      return {
        json: { projectId, credits: left },
        text: `${projectId} has ${left} credits.\n`,
      }
    },
  )
}

function addPayments(payment: Command): void {
  add(
    [payment, 'list', 'list payments that were proven but not honoured'],
    {},
    async (projects) => {
      const all = await projects.unhonoured()
      const lines = all.map(
        ({ noticedAt, intentId, paymentHash, amountSats }) =>
          `${rfc3339(noticedAt)}  ${intentId}  ${String(amountSats).padStart(8)} sat\n  payment hash ${paymentHash}\n`,
      )
      return {
        json: all.map((each) => ({ ...each, noticedAt: rfc3339(each.noticedAt) })),
        text: lines.length > 0 ? lines.join('') : 'Every proven payment was honoured.\n',
      }
    },
  )
  add<[string]>(
    [payment, 'honour', 'let the payer in once more, or allow the provider to be asked again'],
    {
      takes: [argument('<intent>', 'its id, gate_intent_…', idOf('gate_intent', 'intent'))],
      example: 'gate_intent_…',
    },
    async (projects, [intentId]) => {
      const honoured = await projects.honour(intentId)
      const text =
        honoured === 'fresh receipt'
          ? 'When the payer repeats the request with the same proof, it is let in once more.\n'
          : 'The provider may be asked for another 24 hours. The payer repeats the request with X-Gate-Intent.\n'
      return { json: { intentId, honoured }, text }
    },
  )
}

function describe(project: ProjectDetails): string {
  const { projectId, address, verification, credits, isSuspended, openIntents } = project
  const routes = project.routes.map((route) => `  ${routeText(route)}\n`).join('')
  return `Project       ${projectId}${isSuspended ? ' (suspended)' : ''}
Address       ${address}
Verification  ${verification}
Credits       ${credits}
Intents       ${openIntents} open, ${project.authorizedIntents} authorized
Routes
${routes === '' ? '  none\n' : routes}`
}

const routeText = ({ routeId, method, pattern, priceSats }: RouteSpec): string =>
  `${routeId}=${method}:${pattern}:${priceSats}`

const idOf =
  (kind: 'gate_project' | 'gate_intent', what: string) =>
  (id: string): string => {
    if (isId(kind, id)) return id
    throw new InvalidArgumentError(
      `The id of ${what === 'intent' ? 'an' : 'a'} ${what} is ${kind}_….`,
    )
  }

function readRouteId(id: string): string {
  if (isRouteId(id)) return id
  throw new InvalidArgumentError('The id of a route is letters, digits, - and _.')
}

function readRoute(text: string): RouteSpec {
  try {
    return parseRouteSpec(text)
  } catch (error) {
    throw new InvalidArgumentError(`${capitalized(messageOf(error))}.`)
  }
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
