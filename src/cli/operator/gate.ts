/** `mayfly gate project|route|credits|payment …`: the operator's part of GATE. */
import type { Command } from 'commander'
import { MAX_CREDITS } from '../../gate/project-store.ts'
import type { ProjectDetails, Projects } from '../../gate/projects.ts'
import { isRouteId, parseRouteSpec, type RouteSpec } from '../../gate/route-spec.ts'
import { rfc3339 } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { isId } from '../../lib/ids.ts'
import type { Args } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { examples } from '../text.ts'
import { type Answer, give, operator } from './command.ts'

const PROJECT = ['<project>', 'its id, gate_project_…'] as const
const ROUTE_FORM = `
A route is <id>=<method>:<path>:<sats>. In the path, * is one segment and **, at the end, is the rest.
`

/** Adds the operator's commands to those of a project's own server. */
export function addGateOperator(gate: Command): void {
  gate.commandsGroup('Commands of the operator, on the machine of the service:')
  addProjects(gate.command('project').description('register and manage an API'))
  addRoutes(gate.command('route').description('set the prices of a project'))
  addCredits(gate.command('credits').description('set how many requests a project may sell'))
  addPayments(gate.command('payment').description('find payments that were not honoured'))
}

/**
 * The action of a command. It reads its arguments first, and throws a CliError for those that cannot be meant. The
 * store loads the server with it, so only a running command does.
 */
function onProjects<Given extends Args = [], Options = object>(
  read: (args: Given, options: Options) => (projects: Projects) => Promise<Answer>,
) {
  return operator<Options, Given>(async (output, options, args) => {
    const work = read(args, options)
    const { withProjects } = await import('./gate-projects.ts')
    return give(output, await withProjects(output, work))
  })
}

function addProjects(project: Command): void {
  project
    .command('add')
    .description('register an API, and print its capability once')
    .requiredOption('--address <name@domain>', 'the Lightning Address that is paid')
    .option('--route <route>', 'a route with its price; may be given several times', append)
    .option('--credits <count>', 'how many requests it may sell', '0')
    .addHelpText(
      'after',
      examples(
        'mayfly gate project add --address alice@example.com --route ping=GET:/ping:1 --credits 100',
      ) + ROUTE_FORM,
    )
    .action(
      onProjects<[], { address: string; route?: string[]; credits: string }>(
        (_none, { address, route = [], credits: count }) => {
          const routes = route.map(readRoute)
          const credits = readCredits(count, 0)
          return async (projects) => {
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
          }
        },
      ),
    )
  project
    .command('list')
    .description('list all projects')
    .addHelpText('after', examples('mayfly gate project list'))
    .action(
      onProjects(() => async (projects) => {
        const all = await projects.list()
        const lines = all.map(
          ({ projectId, address, credits, isSuspended }) =>
            `${projectId}  ${isSuspended ? 'suspended' : 'active   '}  ${String(credits).padStart(8)} credits  ${address}\n`,
        )
        return {
          json: all.map((each) => ({ ...each, createdAt: rfc3339(each.createdAt) })),
          text: lines.length > 0 ? lines.join('') : 'There are no projects.\n',
        }
      }),
    )
  addOfProject(
    project,
    ['show', 'show a project with its routes, credits and intents'],
    async (projects, projectId) => {
      const details = await projects.show(projectId)
      return {
        json: { ...details, createdAt: rfc3339(details.createdAt) },
        text: describe(details),
      }
    },
  )
  addOfProject(
    project,
    ['suspend', 'stop new intents; those that were made before are still honoured'],
    async (projects, projectId) => {
      await projects.suspend(projectId)
      return {
        json: { projectId, isSuspended: true },
        text: `${projectId} is suspended. Intents that were made before are still honoured.\n`,
      }
    },
  )
  addOfProject(project, ['resume', 'allow new intents again'], async (projects, projectId) => {
    await projects.resume(projectId)
    return { json: { projectId, isSuspended: false }, text: `${projectId} is active.\n` }
  })
  addOfProject(
    project,
    ['rotate-key', 'print a new capability; the old one stops working at once'],
    async (projects, projectId) => {
      const capability = await projects.rotateKey(projectId)
      return {
        json: { projectId, capability },
        text: `Capability    ${capability}\n\nIt is shown only once. The old one no longer works.\n`,
      }
    },
  )
}

/** Adds a command that takes a project and nothing else. */
function addOfProject(
  project: Command,
  [name, description]: [name: string, description: string],
  work: (projects: Projects, projectId: string) => Promise<Answer>,
): void {
  project
    .command(name)
    .description(description)
    .argument(...PROJECT)
    .addHelpText('after', examples(`mayfly gate project ${name} gate_project_…`))
    .action(
      onProjects<[string]>(([text]) => {
        const projectId = readProjectId(text)
        return (projects) => work(projects, projectId)
      }),
    )
}

function addRoutes(route: Command): void {
  route
    .command('add')
    .description('add a route with its price')
    .argument(...PROJECT)
    .argument('<route>', '<id>=<method>:<path>:<sats>')
    .addHelpText(
      'after',
      examples("mayfly gate route add gate_project_… 'render=POST:/render/*:50'") + ROUTE_FORM,
    )
    .action(
      onProjects<[string, string]>(([project, text]) => {
        const projectId = readProjectId(project)
        const added = readRoute(text)
        return async (projects) => {
          await projects.addRoute(projectId, added)
          return {
            json: { projectId, ...added },
            text: `${projectId} has the route ${routeText(added)}.\n`,
          }
        }
      }),
    )
  route
    .command('remove')
    .description('remove a route; its open intents are still honoured')
    .argument(...PROJECT)
    .argument('<routeId>', 'the id of the route')
    .addHelpText('after', examples('mayfly gate route remove gate_project_… render'))
    .action(
      onProjects<[string, string]>(([project, routeId]) => {
        const projectId = readProjectId(project)
        if (!isRouteId(routeId)) {
          throw new CliError('The id of a route is letters, digits, - and _.', EXIT.usage)
        }
        return async (projects) => {
          await projects.removeRoute(projectId, routeId)
          return {
            json: { projectId, routeId },
            text: `${projectId} has no route ${routeId} any more. Its open intents are still honoured.\n`,
          }
        }
      }),
    )
}

function addCredits(credits: Command): void {
  credits
    .command('grant')
    .description('add credits; each authorized request uses one')
    .argument(...PROJECT)
    .argument('<count>', 'how many')
    .addHelpText('after', examples('mayfly gate credits grant gate_project_… 100'))
    .action(
      onProjects<[string, string]>(([project, count]) => {
        const projectId = readProjectId(project)
        const granted = readCredits(count, 1)
        return async (projects) => {
          const left = await projects.grant(projectId, granted)
          return {
            json: { projectId, credits: left },
            text: `${projectId} has ${left} credits.\n`,
          }
        }
      }),
    )
}

function addPayments(payment: Command): void {
  payment
    .command('list')
    .description('list payments that were proven but not honoured')
    .addHelpText('after', examples('mayfly gate payment list'))
    .action(
      onProjects(() => async (projects) => {
        const all = await projects.unhonoured()
        const lines = all.map(
          ({ noticedAt, intentId, paymentHash, amountSats, reason }) =>
            `${rfc3339(noticedAt)}  ${intentId}  ${String(amountSats).padStart(8)} sat  ${reason}\n  payment hash ${paymentHash}\n`,
        )
        return {
          json: all.map((each) => ({ ...each, noticedAt: rfc3339(each.noticedAt) })),
          text: lines.length > 0 ? lines.join('') : 'Every proven payment was honoured.\n',
        }
      }),
    )
  payment
    .command('honour')
    .description('let the payer in once more, or allow the provider to be asked again')
    .argument('<intent>', 'its id, gate_intent_…')
    .addHelpText('after', examples('mayfly gate payment honour gate_intent_…'))
    .action(
      onProjects<[string]>(([intentId]) => {
        if (!isId('gate_intent', intentId)) {
          throw new CliError('The id of an intent is gate_intent_….', EXIT.usage)
        }
        return async (projects) => {
          const honoured = await projects.honour(intentId)
          const text =
            honoured === 'fresh receipt'
              ? 'When the payer repeats the request with the same proof, it is let in once more.\n'
              : 'The provider may be asked for another 24 hours. The payer repeats the request with X-Gate-Intent.\n'
          return { json: { intentId, honoured }, text }
        }
      }),
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

function readProjectId(projectId: string): string {
  if (isId('gate_project', projectId)) return projectId
  throw new CliError('The id of a project is gate_project_….', EXIT.usage)
}

function readRoute(text: string): RouteSpec {
  try {
    return parseRouteSpec(text)
  } catch (error) {
    throw new CliError(`${capitalized(messageOf(error))}.`, EXIT.usage)
  }
}

function readCredits(text: string, least: number): number {
  const credits = /^\d{1,10}$/.test(text) ? Number(text) : -1
  if (credits >= least && credits <= MAX_CREDITS) return credits
  throw new CliError(`Credits are a whole number from ${least} to ${MAX_CREDITS}.`, EXIT.usage)
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const append = (value: string, before: string[] = []): string[] => [...before, value]
