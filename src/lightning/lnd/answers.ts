/** Checks LND's JSON. In it, bytes are base64 and 64-bit integers are decimal strings (proto3 JSON). */
import { base64Bytes, hex } from '../../lib/bytes.ts'
import type { InvoiceState, NodeInfo } from '../lightning.ts'
import { type NodeAnswer, NodeError, type NodeFailure, supportedNetwork } from '../node/error.ts'
import { type Fields, jsonOf, nodeIdOf } from '../node/json-fields.ts'

const read = jsonOf('LND')

/** `answer` has the gRPC code and message if LND refused the call. */
export function lndError(reason: NodeFailure, message: string, answer?: NodeAnswer): NodeError {
  return new NodeError('LND', message, { reason, answer })
}

export function madeInvoice(answer: Fields): { bolt11: string; paymentHash: string } {
  return { bolt11: read.string(answer, 'payment_request'), paymentHash: paymentHash(answer) }
}

/** `settleIndex` counts the node's settlements from 1. It is 0 for an invoice that is not settled. */
export type SeenInvoice = { paymentHash: string; state: InvoiceState; settleIndex: number }

export function seenInvoice(answer: Fields): SeenInvoice {
  return {
    paymentHash: paymentHash(answer),
    state: invoiceState(read.string(answer, 'state')),
    settleIndex: count(answer, 'settle_index'),
  }
}

/** One line of the stream: an invoice, or the error that ends it. */
export function streamedInvoice(line: string): SeenInvoice {
  const fields = read.parse(line)
  if (fields.error !== undefined) throw lndError('refused', 'the invoice stream was ended')
  return seenInvoice(read.object(fields.result))
}

export function nodeInfo(answer: Fields): NodeInfo {
  const chain = Array.isArray(answer.chains) ? answer.chains[0] : null
  const network = supportedNetwork('LND', read.string(read.object(chain), 'network'))
  const nodeId = nodeIdOf(answer.identity_pubkey)
  return { network, synced: answer.synced_to_chain === true, nodeId }
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
      throw read.malformed('an invoice is in an unknown state')
  }
}

function paymentHash(fields: Fields): string {
  const bytes = base64Bytes(read.string(fields, 'r_hash'))
  if (bytes?.length !== 32) throw read.malformed('r_hash is not 32 bytes')
  return hex(bytes)
}

function count(fields: Fields, name: string): number {
  const value = Number(read.string(fields, name))
  if (!Number.isSafeInteger(value) || value < 0) throw read.malformed(`${name} is not a count`)
  return value
}
