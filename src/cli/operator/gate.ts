/** `mayfly gate project|route|credits|payment …`: the operator's part of GATE. */
import type { Command } from 'commander'
import type { Args } from '../cli.ts'
import { examples } from '../text.ts'
import { give, operator } from './command.ts'
import type { AddOptions, ProjectWork } from './gate-work.ts'

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
    .action(onProjects<AddOptions, []>((work, options) => work.addProject(options)))
  project
    .command('list')
    .description('list all projects')
    .addHelpText('after', examples('mayfly gate project list'))
    .action(onProjects((work) => work.listProjects()))
  project
    .command('show')
    .description('show a project with its routes, credits and intents')
    .argument(...PROJECT)
    .addHelpText('after', examples('mayfly gate project show gate_project_…'))
    .action(onProject((work, id) => work.showProject(id)))
  project
    .command('suspend')
    .description('stop new intents; those that were made before are still honoured')
    .argument(...PROJECT)
    .addHelpText('after', examples('mayfly gate project suspend gate_project_…'))
    .action(onProject((work, id) => work.suspendProject(id)))
  project
    .command('resume')
    .description('allow new intents again')
    .argument(...PROJECT)
    .addHelpText('after', examples('mayfly gate project resume gate_project_…'))
    .action(onProject((work, id) => work.resumeProject(id)))
  project
    .command('rotate-key')
    .description('print a new capability; the old one stops working at once')
    .argument(...PROJECT)
    .addHelpText('after', examples('mayfly gate project rotate-key gate_project_…'))
    .action(onProject((work, id) => work.rotateKey(id)))
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
      onProjects<object, [string, string]>((work, _options, [id, route]) =>
        work.addRoute(id, route),
      ),
    )
  route
    .command('remove')
    .description('remove a route; its open intents are still honoured')
    .argument(...PROJECT)
    .argument('<routeId>', 'the id of the route')
    .addHelpText('after', examples('mayfly gate route remove gate_project_… render'))
    .action(
      onProjects<object, [string, string]>((work, _options, [id, routeId]) =>
        work.removeRoute(id, routeId),
      ),
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
      onProjects<object, [string, string]>((work, _options, [id, count]) =>
        work.grantCredits(id, count),
      ),
    )
}

function addPayments(payment: Command): void {
  payment
    .command('list')
    .description('list payments that were proven but not honoured')
    .addHelpText('after', examples('mayfly gate payment list'))
    .action(onProjects((work) => work.listPayments()))
  payment
    .command('honour')
    .description('let the payer in once more, or allow the provider to be asked again')
    .argument('<intent>', 'its id, gate_intent_…')
    .addHelpText('after', examples('mayfly gate payment honour gate_intent_…'))
    .action(onProjects<object, [string]>((work, _options, [intent]) => work.honourPayment(intent)))
}

/** The module that does the work loads the server with it, so only a running command does. */
type GateWork = typeof import('./gate-work.ts')

function onProjects<Options = object, Given extends Args = []>(
  choose: (work: GateWork, options: Options, args: Given) => ProjectWork,
) {
  return operator<Options, Given>(async (output, options, args) => {
    const work = await import('./gate-work.ts')
    return give(output, await work.withProjects(output, choose(work, options, args)))
  })
}

const onProject = (choose: (work: GateWork, projectId: string) => ProjectWork) =>
  onProjects<object, [string]>((work, _options, [projectId]) => choose(work, projectId))

const append = (value: string, before: string[] = []): string[] => [...before, value]
