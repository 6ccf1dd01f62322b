/**
 * LND's REST port: its calls, its stream, and what it answers. In its JSON, bytes are base64 and 64-bit integers are
 * decimal strings (proto3 JSON).
 */
import { base64Bytes, hex } from '../../lib/bytes.ts'
import { isObject, objectIn } from '../../lib/json.ts'
import type { InvoiceState, NodeInfo } from '../lightning.ts'
import {
  type NodeAnswer,
  NodeError,
  type NodeFailure,
  supportedNetwork,
  transportError,
} from '../node/error.ts'
import { createNodeHttp, MAX_BODY_BYTES, type NodeResponse } from '../node/http.ts'
import { type Fields, jsonOf, nodeIdOf } from '../node/json-fields.ts'

const read = jsonOf('LND')

export type LndHttp = ReturnType<typeof createLndHttp>

export function createLndHttp(options: {
  baseUrl: string
  /** The macaroon in hex. */
  macaroon: string
  /** The PEM of the certificate that the node's must chain to. Default: the system's roots. */
  certificate: string | undefined
  connectTimeoutMs: number
}) {
  const headers = { 'grpc-metadata-macaroon': options.macaroon }
  const http = createNodeHttp({ ...options, node: 'LND', headers, answerOf })

  /** The lines of an endless answer, until `signal` aborts. One that is too long is empty. */
  async function* lines(path: string, signal: AbortSignal): AsyncGenerator<string> {
    const what = 'following the invoices'
    try {
      const { status, body, text } = await http.open({ what, method: 'GET', path, signal })
      if (status !== 200) throw http.refusal(what, { status, text: await text() })
      yield* linesOf(body, MAX_BODY_BYTES)
    } catch (error) {
      throw transportError('LND', what, signal.reason ?? error)
    }
  }

  return { call: http.call, lines, close: http.close }
}

/** LND's `{code, message, details}`. */
function answerOf({ text }: NodeResponse): NodeAnswer | null {
  const body = objectIn(text)
  // A streaming call wraps the same fields.
  const { code, message } = isObject(body?.error) ? body.error : (body ?? {})
  return typeof code === 'number' && typeof message === 'string' ? { code, message } : null
}

/** Each line, once it has ended. One of more than `maxBytes` is dropped while it is read, and given as an empty one. */
async function* linesOf(body: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<string> {
  /** What there is of a line, or null if that is too much. */
  let parts: Buffer[] | null = []
  let bytes = 0
  for await (const chunk of body) {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end))
      yield Buffer.concat(parts ?? []).toString('utf8')
      parts = []
      bytes = 0
      from = end + 1
    }
    add(chunk.subarray(from))
  }

  function add(part: Buffer): void {
    bytes += part.length
    if (bytes > maxBytes) parts = null
    parts?.push(part)
  }
}

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
