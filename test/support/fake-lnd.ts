/** A loopback HTTP server in place of LND, for answers that a real LND does not give. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { encodeInvoice, type InvoiceFields } from '../../src/protocol/bolt11-sign.ts'

export type FakeLnd = {
  baseUrl: string
  /** All requests so far: their lines, such as `POST /v1/invoices`, and bodies. */
  requests: { line: string; body: string; macaroon: string | undefined }[]
  close(): Promise<void>
}

/** Answers a request, or returns false for the default answer. */
export type Answer = (request: { line: string }, response: ServerResponse) => boolean

export const MACAROON = '0201036c6e64'.padEnd(128, '7')
export const PAYMENT_HASH = 'ab'.repeat(32)
const R_HASH = Buffer.from(PAYMENT_HASH, 'hex').toString('base64')
const KEY = new Uint8Array(32).fill(1)

/** Starts an LND on regtest that knows one open invoice. `answer` replaces answers. */
export async function startFakeLnd(answer: Answer = () => false): Promise<FakeLnd> {
  const requests: FakeLnd['requests'] = []
  const server = createServer(async (request, response) => {
    const line = `${request.method} ${request.url}`
    const macaroon = request.headers['grpc-metadata-macaroon']?.toString()
    requests.push({ line, body: await bodyOf(request), macaroon })
    if (!answer({ line }, response)) answerAsLnd(line, response)
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : 0)
    })
  })
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export function send(response: ServerResponse, body: unknown, status = 200): true {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
  return true
}

export type InvoiceChanges = Partial<
  Pick<InvoiceFields, 'network' | 'amountMsat' | 'timestamp' | 'expirySeconds' | 'paymentHash'>
>

/** LND's answer to a new invoice, for 21 sats and 900 seconds unless `changes` has others. */
export function newInvoice(changes: InvoiceChanges = {}): Record<string, string> {
  const fields: InvoiceFields = {
    network: 'regtest',
    amountMsat: 21_000,
    timestamp: Math.floor(Date.now() / 1000),
    expirySeconds: 900,
    paymentHash: PAYMENT_HASH,
    paymentSecret: new Uint8Array(32),
    description: 'Mayfly',
    ...changes,
  }
  return { r_hash: R_HASH, payment_request: encodeInvoice(fields, KEY), add_index: '1' }
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

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}
