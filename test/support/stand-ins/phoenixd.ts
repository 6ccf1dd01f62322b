/**
 * A stand-in for phoenixd, made from its documentation and its Api.kt (0.7, 0.8): the same paths, forms, JSON
 * and errors, on regtest. It is not phoenixd, and no money moves.
 */
import type { ServerResponse } from 'node:http'
import { WebSocketServer } from 'ws'
import type { Clock } from '../../../src/lib/clock.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { type StandInHandler, sendJson, sendText, startStandIn } from './http-server.ts'
import { LEDGER_NODE_ID, type Ledger, type LedgerInvoice } from './ledger.ts'

const WRONG_PASSWORD =
  'Invalid authentication (use basic auth with the http password set in phoenix.conf)'

/** `own` has the invoices that it makes, and `others` those that it can pay. */
export async function startPhoenixd(options: {
  clock: Clock
  own: Ledger
  others?: Ledger
  /** As behind a proxy with a certificate of its own. */
  tls?: boolean
}) {
  const { own, others, clock, tls = false } = options
  const [password, limitedPassword] = ['full:pass/word', 'limited pass']
  type Outgoing = { preimage?: string; completedAt?: number }
  const outgoing = new Map<string, Outgoing>()

  const answer: StandInHandler = ({ line, body, headers }, response) => {
    const given = passwordOf(headers.authorization)
    if (given !== password && given !== limitedPassword) {
      return sendText(response, WRONG_PASSWORD, 401)
    }
    const form = new URLSearchParams(body)
    const [, hash = ''] = /^GET \/payments\/\w+\/([0-9a-f]{64})$/.exec(line) ?? []
    if (line === 'GET /getinfo') {
      const channels = [{ state: 'Normal', balanceSat: 0, inboundLiquiditySat: 2_000_000 }]
      return sendJson(response, {
        nodeId: LEDGER_NODE_ID,
        channels,
        chain: 'regtest',
        blockHeight: 433,
        version: '0.8.0-stand-in',
      })
    }
    if (line === 'POST /createinvoice') return createInvoice(form, response)
    if (line.startsWith('GET /payments/incoming/') && own.find(hash)) {
      return sendJson(response, incoming(own.find(hash) as LedgerInvoice))
    }
    if (line.startsWith('GET /payments/outgoingbyhash/') && outgoing.has(hash)) {
      const { preimage, completedAt } = outgoing.get(hash) as Outgoing
      const isPaid = preimage !== undefined
      return sendJson(response, { paymentHash: hash, preimage, isPaid, completedAt })
    }
    if (line === 'POST /payinvoice') {
      if (given !== password) return sendText(response, WRONG_PASSWORD, 401)
      return payInvoice(form, response)
    }
    sendText(response, 'Unknown endpoint (check api doc)', 404)
  }
  const standIn = await startStandIn(answer, { tls })

  function createInvoice(form: URLSearchParams, response: ServerResponse) {
    const memo = form.get('description') ?? ''
    const amountSat = Number(form.get('amountSat'))
    if (memo.length > 128) {
      const text = 'Request parameter description is too long (max 128 characters)'
      return sendText(response, text, 400)
    }
    const expirySeconds = Number(form.get('expirySeconds') ?? 3600)
    const { bolt11, paymentHash } = own.make({ amountMsat: amountSat * 1000, memo, expirySeconds })
    sendJson(response, { amountSat, paymentHash, serialized: bolt11 })
  }

  function incoming(invoice: LedgerInvoice): Record<string, unknown> {
    const isPaid = invoice.timesPaid > 0
    return {
      type: 'incoming_payment',
      subType: 'lightning',
      paymentHash: invoice.paymentHash,
      // phoenixd shows the preimage before the payment too.
      preimage: invoice.preimage,
      description: invoice.memo,
      invoice: invoice.bolt11,
      isPaid,
      isExpired: !isPaid && clock.now() >= invoice.expiresAt,
      requestedSat: invoice.amountMsat / 1000,
      // phoenixd deducts a fee from the first payment.
      receivedSat: isPaid ? invoice.amountMsat / 1000 - 1 : 0,
      fees: isPaid ? 1000 : 0,
      expiresAt: invoice.expiresAt,
      createdAt: invoice.createdAt,
      ...(isPaid ? { completedAt: clock.now() } : {}),
    }
  }

  async function payInvoice(form: URLSearchParams, response: ServerResponse): Promise<void> {
    const bolt11 = form.get('invoice') ?? ''
    const { paymentHash } = decodeInvoice(bolt11)
    const before = outgoing.get(paymentHash)
    // A failed payment is HTTP 200.
    const refuse = (reason: string) => sendJson(response, { paymentHash, reason })
    if (before?.preimage) return refuse('this invoice has already been paid')
    if (before && !before.completedAt) return refuse('another payment is in progress')
    const payment: Outgoing = {}
    outgoing.set(paymentHash, payment)
    // Lets other requests run, as they would while HTLCs are under way.
    await new Promise((resolve) => setImmediate(resolve))
    payment.completedAt = clock.now()
    try {
      payment.preimage = others?.pay(bolt11) ?? own.pay(bolt11)
    } catch (error) {
      return refuse(error instanceof Error ? error.message : 'unknown')
    }
    sendJson(response, {
      recipientAmountSat: 21,
      routingFeeSat: 4,
      paymentId: crypto.randomUUID(),
      paymentHash,
      paymentPreimage: payment.preimage,
    })
  }

  const sockets = new WebSocketServer({ noServer: true })
  standIn.server.on('upgrade', (request, socket, head) => {
    // Node listens to it no more, and whoever was refused may reset the connection.
    socket.on('error', () => undefined)
    const given = passwordOf(request.headers.authorization)
    const isWelcome = given === password || given === limitedPassword
    if (request.url !== '/websocket' || !isWelcome) {
      return socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n')
    }
    sockets.handleUpgrade(request, socket, head, (opened) => sockets.emit('connection', opened))
  })
  /** Sends this to all websockets. */
  function say(event: string | Buffer): void {
    for (const socket of sockets.clients) socket.send(event)
  }
  own.onSettled(({ amountMsat, paymentHash }) => {
    const amountSat = amountMsat / 1000
    const event = { type: 'payment_received', timestamp: clock.now(), amountSat, paymentHash }
    say(JSON.stringify(event))
  })

  function cutSockets(): void {
    for (const socket of sockets.clients) socket.terminate()
  }

  return {
    ...standIn,
    /** With full access. */
    password,
    /** The password that cannot pay. */
    limitedPassword,
    say,
    cutSockets,
    /** The number of open websockets. */
    sockets: () => sockets.clients.size,
    async close() {
      cutSockets()
      await standIn.close()
    },
  }
}

function passwordOf(authorization: string | undefined): string | null {
  const [, encoded] = /^Basic (.+)$/.exec(authorization ?? '') ?? []
  if (encoded === undefined) return null
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  return text.slice(text.indexOf(':') + 1)
}
