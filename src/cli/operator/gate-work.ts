/** The work of `mayfly gate project|route|credits|payment`, on the store of the running server. */
import { openProvider } from '../../gate/open.ts'
import { MAX_CREDITS } from '../../gate/project-store.ts'
import {
  createProjects,
  type ProjectDetails,
  ProjectError,
  type Projects,
  UnknownProject,
} from '../../gate/projects.ts'
import { isRouteId, parseRouteSpec, type RouteSpec } from '../../gate/route-spec.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { isId } from '../../lib/ids.ts'
import { createSimulator } from '../../lightning/simulator.ts'
import { LnurlError } from '../../protocol/lnurl.ts'
import { outboundRules } from '../../service/outbound-rules.ts'
import { bindStore } from '../../service/store-identity.ts'
import { CliError, EXIT } from '../exit.ts'
import type { Output } from '../output.ts'
import { type Answer, withStore } from './command.ts'

/** Each command reads its arguments first, and throws a CliError for those that cannot be meant. */
export type ProjectWork = (projects: Projects) => Promise<Answer>

export type AddOptions = { address: string; route?: string[]; credits: string }

export function addProject({ address, route = [], credits: count }: AddOptions): ProjectWork {
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
}

export function listProjects(): ProjectWork {
  return async (projects) => {
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
}

export function showProject(text: string): ProjectWork {
  const projectId = readProjectId(text)
  return async (projects) => {
    const project = await projects.show(projectId)
    return {
      json: { ...project, createdAt: rfc3339(project.createdAt) },
      text: describe(project),
    }
  }
}

export function suspendProject(text: string): ProjectWork {
  const projectId = readProjectId(text)
  return async (projects) => {
    await projects.suspend(projectId)
    return {
      json: { projectId, isSuspended: true },
      text: `${projectId} is suspended. Intents that were made before are still honoured.\n`,
    }
  }
}

export function resumeProject(text: string): ProjectWork {
  const projectId = readProjectId(text)
  return async (projects) => {
    await projects.resume(projectId)
    return { json: { projectId, isSuspended: false }, text: `${projectId} is active.\n` }
  }
}

export function rotateKey(text: string): ProjectWork {
  const projectId = readProjectId(text)
  return async (projects) => {
    const capability = await projects.rotateKey(projectId)
    return {
      json: { projectId, capability },
      text: `Capability    ${capability}\n\nIt is shown only once. The old one no longer works.\n`,
    }
  }
}

export function addRoute(project: string, text: string): ProjectWork {
  const projectId = readProjectId(project)
  const route = readRoute(text)
  return async (projects) => {
    await projects.addRoute(projectId, route)
    return {
      json: { projectId, ...route },
      text: `${projectId} has the route ${routeText(route)}.\n`,
    }
  }
}

export function removeRoute(project: string, routeId: string): ProjectWork {
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
}

export function grantCredits(project: string, count: string): ProjectWork {
  const projectId = readProjectId(project)
  const granted = readCredits(count, 1)
  return async (projects) => {
    const credits = await projects.grant(projectId, granted)
    return { json: { projectId, credits }, text: `${projectId} has ${credits} credits.\n` }
  }
}

export function listPayments(): ProjectWork {
  return async (projects) => {
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
}

export function honourPayment(intentId: string): ProjectWork {
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
}

/** Runs the work on the store of the settings. @throws CliError if the operator can fix it. */
export function withProjects(output: Output, work: ProjectWork): Promise<Answer> {
  return withStore(
    async (config, db) => {
      const { lightningUrl, network: configured, quoteSeconds } = config
      const isSimulator = lightningUrl.kind === 'simulator'
      const network = await bindStore(db, {
        backend: lightningUrl.kind,
        network: isSimulator ? 'regtest' : configured,
      })
      const outbound = outboundRules(config, network)
      const { allowed } = outbound
      const clock = systemClock
      const simulator = isSimulator ? await createSimulator({ db, clock }) : null
      const provider = openProvider({ simulator, outbound, network, clock, quoteSeconds })
      try {
        const answer = await work(createProjects({ db, provider, allowed, clock }))
        if (config.gate === 'off') {
          output.warn('MAYFLY_GATE is off here. The service offers GATE only when it is `on`.')
        }
        return answer
      } catch (error) {
        throw explained(error)
      } finally {
        await provider.close()
      }
    },
    { mayCreate: true },
  )
}

function explained(error: unknown): unknown {
  if (error instanceof UnknownProject) return new CliError(error.message, EXIT.gone)
  if (error instanceof ProjectError) return new CliError(error.message)
  if (error instanceof LnurlError) {
    return new CliError(`The address cannot be used: ${error.message}.`)
  }
  return error
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
