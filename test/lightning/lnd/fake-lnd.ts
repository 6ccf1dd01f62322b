/** A loopback HTTP server in place of LND, for answers that a real LND does not give. */
import type { ServerResponse } from 'node:http'
import { anInvoice } from '../../support/invoice.ts'
import {
  type Fault,
  sendJson,
  sendText,
  startStandIn,
} from '../../support/stand-ins/http-server.ts'

export const MACAROON = '0201036c6e64'.padEnd(128, '7')
export const PAYMENT_HASH = 'ab'.repeat(32)
const R_HASH = Buffer.from(PAYMENT_HASH, 'hex').toString('base64')

/** Starts an LND on regtest that knows one open invoice. `answer` replaces answers. */
export async function startFakeLnd(answer: Fault = () => false) {
  const standIn = await startStandIn(({ line }, response) => answerAsLnd(line, response))
  standIn.spoil(answer)
  return standIn
}

export function send(response: ServerResponse, body: unknown, status = 200): true {
  if (typeof body === 'string') sendText(response, body, status)
  else sendJson(response, body, status)
  return true
}

/** LND's answer to a new invoice, for 21 sats and 900 seconds. */
export function newInvoice(): Record<string, string> {
  const payment_request = anInvoice({ paymentHash: PAYMENT_HASH })
  return { r_hash: R_HASH, payment_request, add_index: '1' }
}

/** LND's answer to a look-up of the open invoice, with `changes`. */
export function invoice(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return { r_hash: R_HASH, state: 'OPEN', settle_index: '0', ...changes }
}

/** The line of the stream for the settlement with this number. */
export function settlement(settleIndex: number): string {
  const hash = Buffer.alloc(32, settleIndex).toString('base64')
  const result = invoice({ r_hash: hash, state: 'SETTLED', settle_index: String(settleIndex) })
  return `${JSON.stringify({ result })}\n`
}

export const settledHash = (settleIndex: number) => Buffer.alloc(32, settleIndex).toString('hex')

function answerAsLnd(line: string, response: ServerResponse): void {
  if (line === 'GET /v1/getinfo') {
    const chains = [{ chain: 'bitcoin', network: 'regtest' }]
    send(response, { chains, synced_to_chain: true })
  } else if (line === 'POST /v1/invoices') send(response, newInvoice())
  else if (line === `GET /v1/invoice/${PAYMENT_HASH}`) send(response, invoice())
  // The stream stays open without sending anything. LND does not send its headers either.
  else if (!line.startsWith('GET /v1/invoices/subscribe')) {
    send(response, { code: 5, message: 'Not Found', details: [] }, 404)
  }
}
