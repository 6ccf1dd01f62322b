/** LND's JSON, checked. Bytes are base64 and 64-bit integers decimal strings (proto3 JSON). */
import { base64Bytes, hex } from '../lib/bytes.ts'
import type { InvoiceState, NodeInfo } from './lightning.ts'
import { lndError } from './lnd-error.ts'
import { type NodeError, supportedNetwork } from './node-error.ts'
import { nodeIdOf } from './node-id.ts'

export function madeInvoice(answer: unknown): { bolt11: string; paymentHash: string } {
  const fields = object(answer)
  return { bolt11: string(fields, 'payment_request'), paymentHash: paymentHash(fields) }
}

/** `settleIndex` counts the node's settlements from 1; it is 0 for what is not settled. */
export type SeenInvoice = { paymentHash: string; state: InvoiceState; settleIndex: number }

export function seenInvoice(answer: unknown): SeenInvoice {
  const fields = object(answer)
  return {
    paymentHash: paymentHash(fields),
    state: invoiceState(string(fields, 'state')),
    settleIndex: count(fields, 'settle_index'),
  }
}

/** One line of the stream: an invoice, or the error that ends it. */
export function streamedInvoice(line: string): SeenInvoice {
  const fields = object(json(line))
  if (fields.error !== undefined) throw lndError('refused', 'the invoice stream was ended')
  return seenInvoice(fields.result)
}

export function nodeInfo(answer: unknown): NodeInfo {
  const fields = object(answer)
  const chains = Array.isArray(fields.chains) ? fields.chains : []
  const network = supportedNetwork('LND', string(object(chains[0]), 'network'))
  const nodeId = nodeIdOf(fields.identity_pubkey)
  return { network, synced: fields.synced_to_chain === true, nodeId }
}

export function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed('an answer is not JSON')
  }
}

function invoiceState(state: string): InvoiceState {
  switch (state) {
    case 'OPEN':
    case 'ACCEPTED':
      return 'open'
    case 'SETTLED':
      return 'settled'
    case 'CANCELED':
      return 'dead'
    default:
      throw malformed('an invoice is in an unknown state')
  }
}

function paymentHash(fields: Record<string, unknown>): string {
  const bytes = base64Bytes(string(fields, 'r_hash'))
  if (bytes?.length !== 32) throw malformed('r_hash is not 32 bytes')
  return hex(bytes)
}

function count(fields: Record<string, unknown>, name: string): number {
  const value = Number(string(fields, name))
  if (!Number.isSafeInteger(value) || value < 0) throw malformed(`${name} is not a count`)
  return value
}

function string(fields: Record<string, unknown>, name: string): string {
  const value = fields[name]
  if (typeof value !== 'string') throw malformed(`${name} is missing`)
  return value
}

function object(value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw malformed('an answer is not an object')
  return value
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function malformed(what: string): NodeError {
  return lndError('malformed', what)
}
