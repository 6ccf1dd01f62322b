/** The parts of a product that the service needs. `src/service/products.ts` has an entry for each product. */
import type { TSchema } from 'typebox'
import type { ServiceClock } from '../db/clock.ts'
import type { Db, Statement } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import type { InTurn } from '../db/leases.ts'
import type { Log } from '../lib/log.ts'
import type { AnyProduct, PlanId, Product, ProductIdKind } from '../lib/product-names.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'
import type { PlanTerms, Provisioning } from '../payment/provisioning.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Switches } from '../switches/switches.ts'
import type { App } from './app.ts'
import type { IsProxied } from './client-address.ts'
import type { Limit } from './limits.ts'
import type { Memory } from './memory.ts'
import type { Paying } from './paid/paid.ts'
import type { ApiSurface } from './server/cors.ts'
import type { EventStreams } from './streams.ts'
import type { Scheduler } from './turns.ts'

/** A product's description, which needs nothing that is opened at the start. */
export type ProductFacts = {
  name: AnyProduct
  /** What it is, in a sentence or two. */
  about: string
  surface: ApiSurface
  limits: readonly Limit[]
  /** Its part of /llms.txt, or an empty text. */
  guide: string
}

/** The fields that the plans of all products have. */
export type SoldPlan = PlanTerms & { planId: PlanId; available: boolean; durationLabel: string }

/**
 * How the operator suspends a capability of a product, and resumes it. Every statement that uses a capability must
 * itself refuse a suspended one: running instances are not asked.
 */
export type Takedown = {
  /** The kind of the public ids. */
  kind: ProductIdKind
  /** Refused if the capability is unknown, over, or suspended. */
  suspend(publicId: string, now: number): Statement
  /** Refused if it is gone, or not suspended. */
  resume(publicId: string, now: number): Statement
}

/** The description of a product that buyers pay for. */
export type SoldProductFacts<Plan extends SoldPlan = SoldPlan> = ProductFacts & {
  name: Product
  plans: Record<PlanId, Plan>
  /** The schema of a plan, built-in or from the operator's file. */
  planSchema: TSchema
  provisioning: Provisioning
  takedown: Takedown
  /** What its skill is for and when to use it, for the index of skills. */
  skill: string
  /** The schema of what the buyer gets. */
  capability: TSchema
  /** Its entry in the catalogue besides description and plans, and the schema of the whole entry. */
  catalog: { schema: TSchema; entry?: Record<string, string> }
}

/** The parts of the running service that products work with. */
export type ProductParts = Paying & {
  app: App
  db: Db
  hints: Hints
  /** For work that one instance at a time does. */
  inTurn: InTurn
  clock: ServiceClock
  log: Log
  secrets: Secrets
  network: Network
  /** The simulator, if it takes the place of a node. */
  simulator: Lightning | null
  publicUrl: () => string
  quoteSeconds: number
  isProxied: IsProxied
  streams: EventStreams
  memory: Memory
  scheduler: Scheduler
  switches: Switches
}

/** A product whose routes are mounted. */
export type OpenProduct = {
  /** Deletes what expired before this time. @returns how many rows. Never runs twice at once. */
  purge(now: number): Promise<number>
  /** How many live orders or intents were made under a secret that is not configured. */
  foreign?(): Promise<number>
  /** Work that is repeated from when the service listens until it stops, never twice at once. */
  repeating?: readonly Repeated[]
  close?(): Promise<void>
}

/** Failures are logged as `event`, and the work is done again after its time. */
export type Repeated = { everyMs: number; event: string; work(): Promise<void> }
