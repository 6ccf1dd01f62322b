/** GATE on a new store, with a provider on loopback and a clock that the test controls. */
import { createHash, randomUUID } from 'node:crypto'
import type { OutboundTimeouts } from '../../src/alerts/outbound.ts'
import type { Db } from '../../src/db/db.ts'
import type { ProtectedRequest } from '../../src/gate/intents.ts'
import { createLnurlClient } from '../../src/gate/lnurl-client.ts'
import { createProjects, type Projects } from '../../src/gate/projects.ts'
import type { ProofOutcome } from '../../src/gate/proofs.ts'
import {
  createLnurlProvider,
  createSimulatedProvider,
  type Provider,
} from '../../src/gate/provider.ts'
import { createReceipts } from '../../src/gate/receipts.ts'
import { parseRouteSpec } from '../../src/gate/route-spec.ts'
import { createGate } from '../../src/gate/service.ts'
import type { IntentRow, ProjectRow, ReceiptRow } from '../../src/gate/store.ts'
import { createGateStore } from '../../src/gate/store.ts'
import { Problem } from '../../src/http/errors.ts'
import type { Log } from '../../src/lib/log.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import type { Phrase } from '../../src/protocol/errors.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import type { After } from './folder.ts'
import { startLnurlServer } from './lnurl-server.ts'
import { type TestClock, testClock } from './server.ts'
import { createLedger } from './stand-ins/ledger.ts'
import { aMigratedDatabaseUrl, openDatabase, type Stored } from './store.ts'

export const SECRET = '11'.repeat(32)
export const QUOTE_SECONDS = 900
export const URL_OF_GATE = 'https://mayfly.example.org'
const EMPTY_SHA256 = createHash('sha256').digest('hex')

/** A wallet in memory, which can pay its own invoices, also those that have expired. */
export function pocketWallet(clock: TestClock) {
  const ledger = createLedger(clock)
  const paymentHashOf = (bolt11: string): string => decodeInvoice(bolt11).paymentHash
  const wallet = {
    /** Replaces fields of the next invoices. */
    changes: {} as Parameters<typeof ledger.make>[1],
    paymentHashOf,
    async createInvoice(amountMsat: number): Promise<string> {
      const ask = { amountMsat, memo: 'A test', expirySeconds: 3600 }
      return ledger.make(ask, wallet.changes).bolt11
    },
    async lookUp(paymentHash: string) {
      const { timesPaid = 0, preimage = null } = ledger.find(paymentHash) ?? {}
      const isSettled = timesPaid > 0
      return { isSettled, preimage: isSettled ? preimage : null }
    },
    pay(bolt11: string): string {
      const paymentHash = paymentHashOf(bolt11)
      ledger.settleLate(paymentHash)
      return ledger.find(paymentHash)?.preimage ?? ''
    },
  }
  return wallet
}

export type World = Awaited<ReturnType<typeof aGate>>
type Ask = Partial<ProtectedRequest> & { key?: string; project?: string }
type Logged = { event: string } & Record<string, unknown>

/** A busy machine has all the time that it needs. */
const PATIENT: OutboundTimeouts = {
  waitMs: 60_000,
  lookupMs: 60_000,
  connectMs: 60_000,
  silenceMs: 60_000,
  overallMs: 60_000,
}

/** One project with the routes `render=POST:/render/*:50` and `ping=GET:/ping:1`. */
export async function aGate(t: After, { credits = 10 } = {}) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  const clock = testClock()
  const wallet = pocketWallet(clock)
  const lnurl = await startLnurlServer(t, wallet)
  const allowed = new Set([lnurl.host])
  const logged: Logged[] = []
  const keep = (facts: Logged): void => void logged.push(facts)
  const log: Log = { info: keep, warn: keep, error: keep }
  const client = createLnurlClient({ clock, allowed, timeouts: PATIENT })
  const provider = createLnurlProvider({ client, network: 'regtest', clock })
  t.after(async () => {
    await provider.close()
    await db.close()
  })
  const projects = createProjects({ db, provider, allowed, clock })
  const store = createGateStore(db)

  /** Another service on the same store, like after a restart or on another server. */
  async function another(
    changes: { secrets?: [string, ...string[]]; db?: Db; provider?: Provider } = {},
  ) {
    const secrets = createSecrets(bytesOf(changes.secrets ?? [SECRET]))
    return createGate({
      db: changes.db ?? db,
      provider: changes.provider ?? provider,
      receipts: await createReceipts(secrets.keys('gate receipt')),
      secrets,
      network: 'regtest',
      clock,
      log,
      publicUrl: () => URL_OF_GATE,
      quoteSeconds: QUOTE_SECONDS,
    })
  }

  const service = await another()
  const { projectId, capability } = await projects.add({
    address: lnurl.address,
    routes: ['render=POST:/render/*:50', 'ping=GET:/ping:1'].map(parseRouteSpec),
    credits,
  })
  lnurl.requests.length = 0

  const row = async (id: string): Promise<ProjectRow> => {
    const found = await store.project(id)
    if (!found) throw new Error('no such project')
    return found
  }
  /** What opening an intent comes to: a quote, or the phrase of the refusal. */
  async function open({ key = randomUUID(), project = projectId, ...changes }: Ask = {}) {
    try {
      const quoted = await service.open(await row(project), key, aRequest(changes))
      return { kind: 'quote' as const, ...quoted }
    } catch (error) {
      return { kind: phraseOf(error) }
    }
  }
  return {
    db,
    clock,
    lnurl,
    wallet,
    service,
    projects,
    projectId,
    capability,
    logged,
    project: () => row(projectId),
    async intentRow(intentId: string): Promise<IntentRow> {
      const found = await store.intent(intentId)
      if (!found) throw new Error('no such intent')
      return found
    },
    open,
    /** Opens an intent. Throws if it is refused. */
    async quoted(ask?: Ask): Promise<IntentRow> {
      const opened = await open(ask)
      if (opened.kind !== 'quote') throw new Error(`${opened.kind}: ${logged.at(-1)?.reason}`)
      return opened.intent
    },
    another,
  }
}

/**
 * Registers a project in the store of a running server, like the operator's command. Its provider is the
 * simulator.
 */
export async function register(
  { databaseUrl }: Stored,
  { credits = 10, routes = ['render=POST:/render/*:50', 'ping=GET:/ping:1'] } = {},
) {
  async function projects<T>(work: (projects: Projects) => Promise<T>): Promise<T> {
    const db = await openDatabase(databaseUrl)
    const clock = testClock()
    const allowed = new Set<string>()
    const lightning = await createSimulator({ db, clock })
    const provider = createSimulatedProvider({ lightning, allowed, invoiceSeconds: 900, clock })
    try {
      return await work(createProjects({ db, provider, allowed, clock }))
    } finally {
      await db.close()
    }
  }
  const { projectId, capability } = await projects((some) =>
    some.add({ address: 'alice@example.com', routes: routes.map(parseRouteSpec), credits }),
  )
  return { projectId, capability, projects }
}

export function aRequest(changes: Partial<ProtectedRequest> = {}): ProtectedRequest {
  return {
    routeId: 'render',
    method: 'POST',
    path: '/render/cat?size=2',
    bodySha256: EMPTY_SHA256,
    ...changes,
  }
}

function bytesOf([current, ...older]: [string, ...string[]]): [Uint8Array, ...Uint8Array[]] {
  const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))
  return [bytes(current), ...older.map(bytes)]
}

/** Gives a receipt back. */
export const givesBack = (
  { service }: World,
  intent: IntentRow,
  receiptId: string,
): Promise<'recorded' | Phrase> =>
  service.giveBack(intent, receiptId).then(() => 'recorded' as const, phraseOf)

function phraseOf(error: unknown): Phrase {
  if (error instanceof Problem) return error.phrase
  throw error
}

/** Pays an intent and proves it by the preimage. */
export async function pay(world: World, intent: IntentRow): Promise<ReceiptRow> {
  return authorized(world.service.prove(intent, world.wallet.pay(intent.bolt11)))
}

/** The receipt of a proof, which must be authorized. */
export async function authorized(proving: Promise<ProofOutcome>): Promise<ReceiptRow> {
  const proven = await proving
  if (proven.kind !== 'authorized') throw new Error('not authorized')
  return proven.receipt
}
