/**
 * GATE in a run: projects whose payments go to nodes that are not ours, and what their servers and payers were told.
 * Everything that is asked of the service passes `ask`, which watches the promises of GATE.
 */
import { createHash } from 'node:crypto'
import type { GateAuthorization, GateQuote } from '../../../src/gate/schema.ts'
import { bindingText } from '../../../src/protocol/gate-binding.ts'
import type { Run } from '../run-context.ts'
import { createInvoices } from '../world/invoices.ts'
import type { Payee } from './payee.ts'

export type Route = { routeId: string; method: 'GET' | 'POST'; pattern: string; priceSats: number }

export type Project = {
  projectId: string
  /** What its server uses, which learns of a new one some time after it was made. */
  capability: string
  payee: Payee
  routes: readonly Route[]
  granted: number
}

/** A request of a payer to a project. */
export type Wanted = { route: Route; path: string; body: string }

export type Town = ReturnType<typeof createTown>

/** The key of the node that payees share. */
const PAYEE_KEY = Buffer.from('a7'.repeat(32), 'hex')

export const createTown = (run: Run) => ({
  run,
  /** Whether the clock of this run jumps. */
  hasJumps: run.weather.disasters.includes('jump'),
  /** The node of all payees. */
  invoices: createInvoices(PAYEE_KEY),
  projects: [] as Project[],
  /** Since when a capability is over, by the capability. */
  ended: new Map<string, number>(),
  /** The first quote of each intent. */
  quotes: new Map<string, GateQuote>(),
  /** The intent of each payment hash, and of each key of a project. */
  intentOf: new Map<string, string>(),
  /** The receipts of each intent, by how many were given back before. */
  receipts: new Map<string, Map<number, string>>(),
  /** How often somebody may have given a receipt of an intent back. */
  givenBack: new Map<string, Set<string>>(),
  /** Runs of a project's handler, by intent. */
  runs: new Map<string, { begun: number; failed: number }>(),
  /** The preimages that payers have. */
  preimages: new Map<string, string>(),
  /** The prices that a route of a project has had. */
  prices: new Map<string, Set<number>>(),
})

/** Pays an invoice. @returns the preimage, or null. */
export async function payIn(town: Town, bolt11: string): Promise<string | null> {
  const paid = await town.invoices.pay(bolt11)
  if (paid.kind !== 'paid') return null
  town.preimages.set(hashOf(paid.preimage), paid.preimage)
  return paid.preimage
}

/** The payment hash of a preimage. */
export const hashOf = (preimage: string): string =>
  createHash('sha256').update(Buffer.from(preimage, 'hex')).digest('hex')

export function digestOf(
  projectId: string,
  {
    routeId,
    method,
    path,
    body,
  }: { routeId: string; method: string; path: string; body: string | Uint8Array },
): string {
  const bodySha256 = createHash('sha256').update(body).digest('hex')
  const binding = { project: projectId, route: routeId, method, path, bodySha256 }
  return createHash('sha256').update(bindingText(binding)).digest('hex')
}

export type Claims = {
  intent: string
  aud: string
  req: string
  ph: string
  sat: number
  gb?: number
}

/** What a receipt says, whether its signature is right or not. */
export const claimsOf = (receipt: string): Claims =>
  JSON.parse(Buffer.from(receipt.split('.')[1] ?? '', 'base64url').toString()) as Claims

export type { GateAuthorization, GateQuote }
