/** `mayfly gate project|route|credits|payment …`: GATE on the store of the service. */
import { InvalidArgumentError } from 'commander'
import type { ProjectDetails, Projects } from '../../gate/projects.ts'
import { isRouteId, parseRouteSpec, type RouteSpec } from '../../gate/route-spec.ts'
import { MAX_CREDITS } from '../../gate/store.ts'
import { rfc3339 } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { isId } from '../../lib/ids.ts'
import { readOptions } from '../../service/config.ts'
import {
  type Add,
  type Declared,
  type Given,
  group,
  NEEDED,
  type Nothing,
  type Takes,
  whole,
} from '../declare.ts'
import { columns } from '../text.ts'
import { type Answer, operator } from './command.ts'

const ROUTE_FORM = `
A route is <id>=<method>:<path>:<sats>. In the path, * is one segment and **, at the end, is the rest.
`

/** Elsewhere its commands work, and the help of all leaves them out. */
function isGateOn(): boolean {
  try {
    return readOptions(['gate']).gate === 'on'
  } catch {
    // A setting is wrong, which the command says that runs.
    return false
  }
}

/** A command of GATE. The store loads the server with it, so only a running command opens it. */
const gate = <const T extends Takes = Nothing>({
  work,
  mayCreate = false,
  ...declared
}: Declared<T> & {
  /** Whether it may come before the first start of the service. */
  mayCreate?: boolean
  work(projects: Projects, given: Given<T>): Promise<Answer>
}): Add =>
  operator<T>({
    ...declared,
    async run(given, output) {
      const { withProjects } = await import('./gate-projects.ts')
      return withProjects(output, { work: (projects) => work(projects, given), mayCreate })
    },
  })

const PROJECT = {
  '<project>': ['its id, gate_project_…', idOf('gate_project', 'a project')],
} as const

const addProject = gate({
  command: 'add',
  says: 'register an API, and print its capability once',
  takes: {
    '--address <name@domain>': ['the Lightning Address that is paid', String, NEEDED],
    '--route <route>': [
      'a route with its price; may be given several times',
      (text: string, before: RouteSpec[] = []) => [...before, readRoute(text)],
    ],
    '--credits <count>': ['how many requests it may sell', whole(0, MAX_CREDITS), 0],
  },
  examples: [
    'mayfly gate project add --address alice@example.com --route ping=GET:/ping:1 --credits 100',
  ],
  notes: ROUTE_FORM,
  mayCreate: true,
  async work(projects, { address, route: routes = [], credits }) {
    const added = await projects.add({ address, routes, credits })
    const how =
      added.verification === 'provider'
        ? 'provider (it confirms its payments itself)'
        : 'preimage (payers need a wallet that shows the preimage)'
    const rows = [
      ['Project', added.projectId],
      ['Verification', how],
      ['Capability', added.capability],
    ]
    const advice = 'The capability is shown only once. Keep it on the server of the API.'
    return { json: added, text: `${columns(rows)}\n${advice}\n` }
  },
})

const listProjects = gate({
  command: 'list',
  says: 'list all projects',
  examples: ['mayfly gate project list'],
  async work(projects) {
    const all = await projects.list()
    const rows = all.map(({ projectId, address, credits, isSuspended }) => [
      projectId,
      isSuspended ? 'suspended' : 'active',
      `${credits} credits`,
      address,
    ])
    return {
      json: all.map((each) => ({ ...each, createdAt: rfc3339(each.createdAt) })),
      text: columns(rows) || 'There are no projects.\n',
    }
  },
})

const ofProject = (
  command: string,
  says: string,
  work: (projects: Projects, projectId: string) => Promise<Answer>,
): Add =>
  gate({
    command,
    says,
    takes: PROJECT,
    examples: [`mayfly gate project ${command} gate_project_…`],
    work: (projects, { project }) => work(projects, project),
  })

const showProject = ofProject(
  'show',
  'show a project with its routes, credits and intents',
  async (projects, projectId) => {
    const details = await projects.show(projectId)
    const json = { ...details, createdAt: rfc3339(details.createdAt) }
    return { json, text: describe(details) }
  },
)

const suspension = (command: 'suspend' | 'resume', says: string, became: string): Add =>
  ofProject(command, says, async (projects, projectId) => {
    await projects[command](projectId)
    return {
      json: { projectId, isSuspended: command === 'suspend' },
      text: `${projectId} is ${became}.\n`,
    }
  })

const rotateKey = ofProject(
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

const addRoute = gate({
  command: 'add',
  says: 'add a route with its price',
  takes: { ...PROJECT, '<route>': ['<id>=<method>:<path>:<sats>', readRoute] },
  examples: [`mayfly gate route add gate_project_… 'render=POST:/render/*:50'`],
  notes: ROUTE_FORM,
  async work(projects, { project: projectId, route }) {
    await projects.addRoute(projectId, route)
    const text = `${projectId} has the route ${routeText(route)}.\n`
    return { json: { projectId, ...route }, text }
  },
})

const removeRoute = gate({
  command: 'remove',
  says: 'remove a route; its open intents are still honoured',
  takes: { ...PROJECT, '<routeId>': ['the id of the route', readRouteId] },
  examples: ['mayfly gate route remove gate_project_… render'],
  async work(projects, { project: projectId, routeId }) {
    await projects.removeRoute(projectId, routeId)
    return {
      json: { projectId, routeId },
      text: `${projectId} has no route ${routeId} any more. Its open intents are still honoured.\n`,
    }
  },
})

const grantCredits = gate({
  command: 'grant',
  says: 'add credits; each authorized request uses one',
  takes: { ...PROJECT, '<count>': ['how many', whole(1, MAX_CREDITS)] },
  examples: ['mayfly gate credits grant gate_project_… 100'],
  async work(projects, { project: projectId, count }) {
    const credits = await projects.grant(projectId, count)
    return { json: { projectId, credits }, text: `${projectId} has ${credits} credits.\n` }
  },
})

const listPayments = gate({
  command: 'list',
  says: 'list payments that were proven but not honoured',
  examples: ['mayfly gate payment list'],
  async work(projects) {
    const all = await projects.unhonoured()
    const lines = all.map(
      ({ noticedAt, intentId, paymentHash, amountSats }) =>
        `${rfc3339(noticedAt)}  ${intentId}  ${String(amountSats).padStart(8)} sat\n  payment hash ${paymentHash}\n`,
    )
    return {
      json: all.map((each) => ({ ...each, noticedAt: rfc3339(each.noticedAt) })),
      text: lines.join('') || 'Every proven payment was honoured.\n',
    }
  },
})

const honourPayment = gate({
  command: 'honour',
  says: 'let the payer in once more, or allow the provider to be asked again',
  takes: { '<intent>': ['its id, gate_intent_…', idOf('gate_intent', 'an intent')] },
  examples: ['mayfly gate payment honour gate_intent_…'],
  async work(projects, { intent: intentId }) {
    const honoured = await projects.honour(intentId)
    const text =
      honoured === 'fresh receipt'
        ? 'When the payer repeats the request with the same proof, it is let in once more.\n'
        : 'The provider may be asked for another 24 hours. The payer repeats the request with X-Gate-Intent.\n'
    return { json: { intentId, honoured }, text }
  },
})

export const addGate: Add = (program) =>
  group(
    {
      command: 'gate',
      says: 'GATE (private beta): the APIs that sell requests, their prices and credits',
      isHidden: !isGateOn(),
    },
    [
      group({ command: 'project', says: 'register and manage an API' }, [
        addProject,
        listProjects,
        showProject,
        suspension(
          'suspend',
          'stop new intents; those that were made before are still honoured',
          'suspended. Intents that were made before are still honoured',
        ),
        suspension('resume', 'allow new intents again', 'active'),
        rotateKey,
      ]),
      group({ command: 'route', says: 'set the prices of a project' }, [addRoute, removeRoute]),
      group({ command: 'credits', says: 'set how many requests a project may sell' }, [
        grantCredits,
      ]),
      group({ command: 'payment', says: 'find payments that were not honoured' }, [
        listPayments,
        honourPayment,
      ]),
    ],
  )(program)

function describe(project: ProjectDetails): string {
  const { projectId, address, verification, credits, isSuspended, openIntents } = project
  const routes = project.routes.map((route) => `  ${routeText(route)}\n`).join('') || '  none\n'
  const rows = [
    ['Project', `${projectId}${isSuspended ? ' (suspended)' : ''}`],
    ['Address', address],
    ['Verification', verification],
    ['Credits', String(credits)],
    ['Intents', `${openIntents} open, ${project.authorizedIntents} authorized`],
    ['Routes'],
  ]
  return `${columns(rows)}${routes}`
}

const routeText = ({ routeId, method, pattern, priceSats }: RouteSpec): string =>
  `${routeId}=${method}:${pattern}:${priceSats}`

function idOf(kind: 'gate_project' | 'gate_intent', what: string) {
  return (id: string): string => {
    if (isId(kind, id)) return id
    throw new InvalidArgumentError(`The id of ${what} is ${kind}_….`)
  }
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
