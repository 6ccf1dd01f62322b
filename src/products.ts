/** The products on sale, an entry each. One is removed with its folder and its line in PRODUCTS. */
import type { TSchema } from 'typebox'
import { readPlans, refuseUnknownProducts } from './catalog.ts'
import { CATCH_GUIDE } from './catch/guide.ts'
import { INGEST } from './catch/limits.ts'
import { mountCatch } from './catch/routes.ts'
import {
  CATCH_PLANS,
  CatchCapability,
  CatchCatalog,
  CatchEvent,
  CatchIpLocation,
  CatchPlan,
  CatchStatus,
} from './catch/schema.ts'
import { createCatch } from './catch/service.ts'
import type { Db } from './db/db.ts'
import type { Hints } from './db/hints.ts'
import { NEW_INTENTS, NEW_INTENTS_OF_VISITOR } from './gate/limits.ts'
import type { App } from './http/app.ts'
import type { BodyBudget } from './http/body-budget.ts'
import { FORWARDING_HEADERS, type IsProxied } from './http/client-address.ts'
import type { EventStreams } from './http/event-stream.ts'
import { createFairScheduler, type FairScheduler } from './http/fair-scheduler.ts'
import { LIMITS, type Limit } from './http/limits.ts'
import type { Paying } from './http/paid.ts'
import type { ResponseBudget } from './http/response-budget.ts'
import type { Clock, DeletionTime } from './lib/clock.ts'
import type { Product } from './lib/product-names.ts'
import type { Provisioning } from './payment/provisioning.ts'
import { PULSE_GUIDE } from './pulse/guide.ts'
import { PINGS, PUBLIC_STATUS } from './pulse/limits.ts'
import { mountPulse } from './pulse/routes.ts'
import {
  PULSE_PLANS,
  PublicPulseStatus,
  PulseCapability,
  PulseCatalog,
  PulsePlan,
  PulseSettings,
  PulseStatus,
} from './pulse/schema.ts'
import { createPulse } from './pulse/service.ts'
import { WHISPER_GUIDE } from './whisper/guide.ts'
import { READS } from './whisper/limits.ts'
import { mountWhisper } from './whisper/routes.ts'
import { WHISPER_PLANS, WhisperCapability, WhisperCatalog, WhisperPlan } from './whisper/schema.ts'
import { createWhisper } from './whisper/service.ts'

/** A product as the rest of the service sees it. */
export type Sold = {
  product: Product
  provisioning: Provisioning
  /** What the catalogue says of it, and the schema of that. */
  catalog: { schema: TSchema; entry: { description: string } & Record<string, unknown> }
  capability: TSchema
  /** Schemas that have a name in the OpenAPI document. */
  schemas: Record<string, TSchema>
  /** Its part of /llms.txt. */
  guide: string
  mount(
    app: App,
    paying: Paying,
    live: { streams: EventStreams; bodyBudget: BodyBudget; responseBudget: ResponseBudget },
  ): void
  /** Deletes what was over by then; how many are gone for good. */
  purge(now: DeletionTime): Promise<number>
}

/** What products are made of. */
export type Materials = {
  plans: Plans
  unpaidBytes: { perNetwork: number; inAll: number }
  db: Db
  hints: Hints
  clock: Clock
  isProxied: IsProxied
  locate: (ip: string) => CatchIpLocation | null
  /** Of the service; nobody searches elsewhere. */
  scheduler?: FairScheduler
  /** Told of the bytes that each request to an inbox took. */
  onKept?: (bytes: number) => void
}

const PRODUCTS: Record<Product, (materials: Materials) => Sold> = {
  catch: sellCatch,
  whisper: sellWhisper,
  pulse: sellPulse,
}

/** The limits of the service and of every product. */
export const ALL_LIMITS: readonly Limit[] = [
  ...Object.values(LIMITS),
  ...Object.values(INGEST),
  READS,
  PINGS,
  PUBLIC_STATUS,
  NEW_INTENTS,
  NEW_INTENTS_OF_VISITOR,
]

/** The plans on sale, of every product. */
export type Plans = ReturnType<typeof readAllPlans>

/**
 * @param file the operator's changes, or null.
 * @throws ConfigError for a plan that cannot be sold.
 */
export function readAllPlans(file: unknown) {
  refuseUnknownProducts(file, Object.keys(PRODUCTS))
  return {
    catch: readPlans(file, 'catch', CatchPlan, CATCH_PLANS),
    whisper: readPlans(file, 'whisper', WhisperPlan, WHISPER_PLANS),
    pulse: readPlans(file, 'pulse', PulsePlan, PULSE_PLANS),
  }
}

export function openProducts(materials: Materials): Sold[] {
  return Object.values(PRODUCTS).map((open) => open(materials))
}

function sellCatch(materials: Materials): Sold {
  const {
    plans: { catch: plans },
    db,
    hints,
    clock,
    isProxied,
    locate,
    scheduler = createFairScheduler(),
    onKept = () => {},
  } = materials
  const isForwardingHeader = (name: string): boolean => FORWARDING_HEADERS.has(name)
  const service = createCatch({ db, hints, clock, isForwardingHeader, locate, scheduler, onKept })
  return {
    product: 'catch',
    provisioning: service.provisioning,
    catalog: {
      schema: CatchCatalog,
      entry: {
        description: 'A webhook inbox: it stores any request, byte for byte, for its owner.',
        plans: Object.values(plans),
      },
    },
    capability: CatchCapability,
    schemas: { CatchCapability, CatchStatus, CatchEvent, CatchIpLocation },
    guide: CATCH_GUIDE,
    mount: (app, paying, { streams, bodyBudget, responseBudget }) =>
      mountCatch(app, {
        ...paying,
        service,
        plans,
        isProxied,
        streams,
        responseBudget,
        bodyBudget,
      }),
    purge: service.purge,
  }
}

function sellWhisper({ plans: { whisper: plans }, unpaidBytes, db, clock }: Materials): Sold {
  const service = createWhisper({ db, clock, unpaidBytes })
  return {
    product: 'whisper',
    provisioning: service.provisioning,
    catalog: {
      schema: WhisperCatalog,
      entry: {
        description:
          'Bytes that you encrypt before the upload. They can be read a limited number of times, from a time that you set.',
        clientEncryption: 'AES-256-GCM',
        plans: Object.values(plans),
      },
    },
    capability: WhisperCapability,
    schemas: { WhisperCapability },
    guide: WHISPER_GUIDE,
    mount: (app, paying, { responseBudget }) =>
      mountWhisper(app, { ...paying, service, plans, clock, responseBudget }),
    purge: service.purge,
  }
}

function sellPulse({ plans: { pulse: plans }, db, hints, clock }: Materials): Sold {
  const service = createPulse({ db, hints, clock })
  return {
    product: 'pulse',
    provisioning: service.provisioning,
    catalog: {
      schema: PulseCatalog,
      entry: {
        description: 'A heartbeat monitor: it notices when a job stops pinging it.',
        plans: Object.values(plans),
      },
    },
    capability: PulseCapability,
    schemas: { PulseCapability, PulseSettings, PulseStatus, PublicPulseStatus },
    guide: PULSE_GUIDE,
    mount: (app, paying, { streams }) =>
      mountPulse(app, { ...paying, service, plans, streams, clock }),
    purge: service.purge,
  }
}
