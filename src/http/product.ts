/** What a product brings to the service. `src/products.ts` has an entry for each. */
import type { TSchema } from 'typebox'
import type { Db } from '../db/db.ts'
import type { Hints } from '../db/hints.ts'
import type { Clock, DeletionTime } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { AnyProduct, PlanId, Product } from '../lib/product-names.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'
import type { PlanTerms, Provisioning } from '../payment/provisioning.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { ApiSurface } from './api-surface.ts'
import type { App } from './app.ts'
import type { BodyBudget } from './body-budget.ts'
import type { IsProxied } from './client-address.ts'
import type { EventStreams } from './event-stream.ts'
import type { FairScheduler } from './fair-scheduler.ts'
import type { Limit } from './limits.ts'
import type { Paying } from './paid.ts'
import type { ResponseBudget } from './response-budget.ts'

/** What is known of a product before anything is opened. */
export type ProductFacts = {
  name: AnyProduct
  surface: ApiSurface
  limits: readonly Limit[]
  /** Schemas that have a name in the OpenAPI document. */
  schemas: Record<string, TSchema>
  /** Its part of /llms.txt; empty for none. */
  guide: string
}

/** A plan, as far as every product's has the same. */
export type SoldPlan = PlanTerms & { planId: PlanId; available: boolean }

/** The same of one that is sold for an invoice. */
export type SoldProductFacts<Plan extends SoldPlan = SoldPlan> = ProductFacts & {
  name: Product
  plans: Record<PlanId, Plan>
  /** What a plan must be, whoever has written it. */
  planSchema: TSchema
  provisioning: Provisioning
  /** What the buyer gets. */
  capability: TSchema
  /** What the catalogue says of it besides the plans, and the schema of all that. */
  catalog: { schema: TSchema; entry: { description: string } & Record<string, string> }
}

/** The parts of the running service that products work with. */
export type ProductParts = Paying & {
  app: App
  db: Db
  hints: Hints
  clock: Clock
  log: Log
  secrets: Secrets
  network: Network
  /** In place of the node, where no real money moves. */
  simulator: Lightning | null
  publicUrl: () => string
  quoteSeconds: number
  isProxied: IsProxied
  streams: EventStreams
  bodyBudget: BodyBudget
  responseBudget: ResponseBudget
  scheduler: FairScheduler
}

/** A product whose routes are mounted. */
export type OpenProduct = {
  /** Deletes what was over by then, never twice at once; how many are gone for good. */
  purge(now: DeletionTime): Promise<number>
  /** What may still be paid and was made under none of the configured secrets. */
  foreign?(): Promise<number>
  close?(): Promise<void>
}
