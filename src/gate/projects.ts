/** The operator's actions on projects, in the store of the running server. */
import { randomBytes } from 'node:crypto'
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { newId, tokenOf } from '../lib/ids.ts'
import { parseLightningAddress } from '../protocol/lnurl.ts'
import type { AllowedHosts } from '../protocol/public-url.ts'
import { tokenHash } from '../secrets/tokens.ts'
import type { Provider } from './provider.ts'
import type { RouteSpec } from './route-spec.ts'
import type { VerificationKind } from './schema.ts'
import {
  askProviderAgain,
  createGateStore,
  deleteRoute,
  grantCredits,
  honourIntent,
  insertProject,
  insertRoute,
  MAX_CREDITS,
  type ProjectRow,
  type RouteRow,
  replaceKey,
  resumeProject,
  suspendProject,
} from './store.ts'

/** A project as the operator sees it. */
export type ProjectView = {
  projectId: string
  address: string
  verification: VerificationKind
  credits: number
  isSuspended: boolean
  createdAt: number
}

export type ProjectDetails = ProjectView & {
  routes: RouteSpec[]
  /** The number of intents that await payment. */
  openIntents: number
  authorizedIntents: number
}

export type NewProject = { address: string; routes: RouteSpec[]; credits: number }

/** A refused action. The message is a sentence for the operator. */
export class ProjectError extends Error {
  override name = 'ProjectError'
}

/** The project or intent does not exist. */
export class UnknownProject extends ProjectError {
  override name = 'UnknownProject'
}

export type Honoured = 'fresh receipt' | 'provider asked again'

export type UnhonouredPayment = {
  intentId: string
  projectId: string
  paymentHash: string
  amountSats: number
  noticedAt: number
}

/** Enough for one listing. */
const UNHONOURED_SHOWN = 1_000
const ASK_AGAIN_MS = 24 * 60 * 60 * 1000

export function createProjects(deps: {
  db: Db
  provider: Provider
  allowed: AllowedHosts
  clock: Clock
}) {
  const { db, provider, allowed, clock } = deps
  const store = createGateStore(db)

  async function existing(projectId: string): Promise<ProjectRow> {
    const project = await store.project(projectId)
    if (!project) throw new UnknownProject(`There is no project ${projectId}.`)
    return project
  }

  /** Changes one row, or tells that the statement's condition does not hold. */
  const change = (lockKey: string, statement: Statement) =>
    attempt(db.write({ lockKey, statements: { changed: statement } }))

  return {
    /** Returns the capability, this one time. @throws LnurlError if the address cannot be paid. */
    async add({ address: text, routes, credits }: NewProject) {
      const twice = routes.find(({ routeId }, i) =>
        routes.slice(0, i).some((other) => other.routeId === routeId),
      )
      if (twice) throw new ProjectError(`The route ${twice.routeId} is there twice.`)
      const { address } = parseLightningAddress(text, allowed)
      const prices = routes.map(({ priceSats }) => priceSats)
      const verification = await provider.probe(address, prices)
      const projectId = newId('gate_project')
      const capability = newCapability()
      const project = insertProject({
        project_id: projectId,
        key_hash: tokenHash(capability),
        address,
        verification,
        credits,
        created_at: clock.now(),
      })
      await db.write({
        lockKey: projectId,
        statements: { project, routes: routes.map((route) => insertRoute(projectId, route)) },
      })
      return { projectId, capability, verification }
    },

    async list(): Promise<ProjectView[]> {
      return (await store.projects()).map(viewOf)
    },

    async show(projectId: string): Promise<ProjectDetails> {
      const project = await existing(projectId)
      const routes = await store.routes(projectId)
      const { open, authorized } = await store.counts(projectId, clock.now())
      return {
        ...viewOf(project),
        routes: routes.map(specOf),
        openIntents: open,
        authorizedIntents: authorized,
      }
    },

    async suspend(projectId: string): Promise<void> {
      const done = await change(projectId, suspendProject(projectId, clock.now()))
      if ('rows' in done) return
      await existing(projectId)
      throw new ProjectError(`${projectId} was suspended before.`)
    },

    async resume(projectId: string): Promise<void> {
      const done = await change(projectId, resumeProject(projectId))
      if ('rows' in done) return
      await existing(projectId)
      throw new ProjectError(`${projectId} is not suspended.`)
    },

    /** Returns the new capability. The old one is invalid from now on. */
    async rotateKey(projectId: string): Promise<string> {
      const capability = newCapability()
      const done = await change(projectId, replaceKey(projectId, tokenHash(capability)))
      if ('refused' in done) throw new UnknownProject(`There is no project ${projectId}.`)
      return capability
    },

    async addRoute(projectId: string, route: RouteSpec): Promise<void> {
      const { address } = await existing(projectId)
      await provider.probe(address, [route.priceSats])
      const done = await change(projectId, insertRoute(projectId, route))
      if ('refused' in done) {
        throw new ProjectError(
          `${projectId} has a route ${route.routeId}. Remove it first; open intents keep their price.`,
        )
      }
    },

    async removeRoute(projectId: string, routeId: string): Promise<void> {
      await existing(projectId)
      const done = await change(projectId, deleteRoute(projectId, routeId))
      if ('refused' in done) throw new ProjectError(`${projectId} has no route ${routeId}.`)
    },

    /** Returns the credits after the grant. */
    async grant(projectId: string, credits: number): Promise<number> {
      const done = await change(projectId, grantCredits(projectId, credits))
      if ('rows' in done) return Number(done.rows.changed[0]?.credits)
      await existing(projectId)
      throw new ProjectError(`${projectId} would have more than ${MAX_CREDITS} credits.`)
    },

    /** Payments whose request failed too often, oldest first. */
    async unhonoured(): Promise<UnhonouredPayment[]> {
      const rows = await store.unhonoured(UNHONOURED_SHOWN)
      return rows.map((row) => ({
        intentId: row.intent_id,
        projectId: row.project_id,
        paymentHash: row.payment_hash,
        amountSats: row.amount_sats,
        noticedAt: row.noticed_at,
      }))
    },

    /**
     * Honours a payment. A paid intent gets a fresh receipt when its payer asks. For an unproven one,
     * polls may ask the provider for another day.
     */
    async honour(intentId: string): Promise<Honoured> {
      const intent = await store.intent(intentId)
      if (!intent) throw new UnknownProject(`There is no intent ${intentId}.`)
      await existing(intent.project_id)
      const now = clock.now()
      const honoured = await change(intentId, honourIntent(intentId, now))
      if ('rows' in honoured) return 'fresh receipt'
      if (intent.verify_url === null) {
        throw new ProjectError(
          `The provider of ${intentId} does not tell of payments. The preimage of its invoice is honoured at any time, without this command.`,
        )
      }
      const asked = await change(intentId, askProviderAgain(intentId, now + ASK_AGAIN_MS))
      if ('rows' in asked) return 'provider asked again'
      throw new ProjectError(`${intentId} has changed meanwhile, and nothing was done. Try again.`)
    },
  }
}

export type Projects = ReturnType<typeof createProjects>

const newCapability = (): string => tokenOf('gate_key', new Uint8Array(randomBytes(32)))

function viewOf(project: ProjectRow): ProjectView {
  return {
    projectId: project.project_id,
    address: project.address,
    verification: project.verification,
    credits: project.credits,
    isSuspended: project.suspended_at !== null,
    createdAt: project.created_at,
  }
}

function specOf({ route_id, method, pattern, price_sats }: RouteRow): RouteSpec {
  return { routeId: route_id, method, pattern, priceSats: price_sats }
}
