/**
 * A stand-in for Core Lightning's clnrest, made from the documentation of its methods: the same paths, JSON,
 * codes and errors, on regtest. It is not Core Lightning, and no money moves.
 */
import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '../../../src/lib/clock.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { sendJson, startStandIn } from './http-server.ts'
import { LEDGER_NODE_ID, type Ledger, type LedgerInvoice } from './ledger.ts'
import { type Restrictions, runeRefusal } from './runes.ts'

export type ClnStandIn = Awaited<ReturnType<typeof startCln>>

type Params = Record<string, unknown>

/** What `pay` takes beside the invoice, of what is of use here. */
const PAY_OPTIONS = ['amount_msat', 'maxfee', 'maxfeepercent', 'exemptfee', 'retry_for']

/** `own` has the invoices that it makes, and `others` those that it can pay. */
export async function startCln(options: {
  clock: Clock
  own: Ledger
  others?: Ledger
  network?: string
  /** Warnings in the answer of getinfo. */
  warnings?: Params
}) {
  const { own, others, clock, network = 'regtest' } = options
  const runes = new Map<string, { restrictions: Restrictions; lastUsed?: number }>()
  const labels = new Set<unknown>()
  const pays = new Map<string, { status: string; preimage?: string }>()

  const methods: Record<string, (params: Params, response: ServerResponse) => unknown> = {
    getinfo: () => ({
      id: LEDGER_NODE_ID,
      alias: 'stand-in',
      network,
      blockheight: 433,
      version: 'v25.12-stand-in',
      ...options.warnings,
    }),

    invoice({ amount_msat, label, description, expiry = 604_800 }) {
      if (typeof amount_msat !== 'number' || !Number.isSafeInteger(amount_msat)) {
        throw rpcError(-32602, 'amount_msat: should be positive msat or "any"')
      }
      if (labels.has(label)) throw rpcError(900, `Duplicate label '${label}'`)
      labels.add(label)
      const { bolt11, paymentHash, expiresAt } = own.make({
        amountMsat: amount_msat,
        memo: String(description),
        expirySeconds: Number(expiry),
      })
      return {
        bolt11,
        payment_hash: paymentHash,
        payment_secret: 'ab'.repeat(32),
        expires_at: expiresAt / 1000,
        created_index: labels.size,
        warning_capacity: 'Insufficient incoming channel capacity to pay invoice',
      }
    },

    listinvoices({ payment_hash }) {
      const invoice = own.find(String(payment_hash))
      return { invoices: invoice ? [shown(invoice)] : [] }
    },

    async waitanyinvoice({ lastpay_index = 0, timeout }, response) {
      const after = Number(lastpay_index)
      const next = () => own.settled.find(({ settleIndex }) => settleIndex > after)
      let forget = () => {}
      const settled = new Promise<void>((resolve) => {
        forget = own.onSettled(() => resolve())
      })
      const isOver = new AbortController()
      response.on('close', () => isOver.abort())
      const over = wait(Number(timeout) * 1000, undefined, { signal: isOver.signal, ref: false })
      if (!next()) await Promise.race([settled, over.catch(() => {})])
      isOver.abort()
      await over.catch(() => {})
      forget()
      const invoice = next()
      if (!invoice) throw rpcError(904, 'Timed out while waiting for invoice to be paid')
      return shown(invoice)
    },

    listpays({ payment_hash }) {
      const payment = pays.get(String(payment_hash))
      return { pays: payment ? [{ payment_hash, ...payment }] : [] }
    },

    async pay({ bolt11, ...rest }) {
      const unknown = Object.keys(rest).find((each) => !PAY_OPTIONS.includes(each))
      if (unknown !== undefined) throw rpcError(-32602, `unknown parameter: ${unknown}`)
      const paymentHash = decodeInvoice(String(bolt11)).paymentHash
      const before = pays.get(paymentHash)
      if (before?.status === 'complete') return paid(paymentHash, before.preimage ?? '')
      if (before?.status === 'pending') throw rpcError(200, 'payment is still pending')
      pays.set(paymentHash, { status: 'pending' })
      await new Promise((resolve) => setImmediate(resolve))
      try {
        const preimage = (others ?? own).pay(String(bolt11))
        pays.set(paymentHash, { status: 'complete', preimage })
        return paid(paymentHash, preimage)
      } catch (error) {
        pays.set(paymentHash, { status: 'failed' })
        throw rpcError(210, error instanceof Error ? error.message : 'no route')
      }
    },
  }

  const paid = (payment_hash: string, payment_preimage: string) => ({
    payment_hash,
    payment_preimage,
    status: 'complete',
    parts: 1,
  })

  function shown(invoice: LedgerInvoice): Params {
    const isPaid = invoice.timesPaid > 0
    const isExpired = !isPaid && clock.now() >= invoice.expiresAt
    return {
      label: `label-${invoice.paymentHash}`,
      bolt11: invoice.bolt11,
      payment_hash: invoice.paymentHash,
      amount_msat: invoice.amountMsat,
      description: invoice.memo,
      expires_at: invoice.expiresAt / 1000,
      created_index: 1,
      status: isPaid ? 'paid' : isExpired ? 'expired' : 'unpaid',
      ...(isPaid
        ? {
            pay_index: invoice.settleIndex,
            amount_received_msat: invoice.amountMsat,
            paid_at: Math.floor(clock.now() / 1000),
            payment_preimage: invoice.preimage,
          }
        : {}),
    }
  }

  const standIn = await startStandIn(
    async ({ line, body, headers }, response) => {
      const [, name = ''] = /^POST \/v1\/(\w+)$/.exec(line) ?? []
      const refuse = (status: number, code: number, message: string) =>
        sendJson(response, { code, message }, status)
      const given = headers.rune
      if (given === undefined) return refuse(403, 1501, 'Not authorized: Missing rune')
      const rune = runes.get(String(given))
      if (!rune) return refuse(401, 1501, 'Not authorized: Not derived from master')
      const params = JSON.parse(body) as Params
      const call = { method: name, params, now: clock.now() }
      const refusal = runeRefusal(rune.restrictions, call, rune.lastUsed)
      if (refusal !== null) return refuse(401, 1502, `Not permitted: ${refusal}`)
      // Of any method: so `rate` and `per` see a look-up too.
      rune.lastUsed = clock.now()
      const method = methods[name]
      if (!method) return refuse(404, -32601, `Unknown command '${name}'`)
      try {
        sendJson(response, await method(params, response), 201)
      } catch (error) {
        if (!isRpcError(error)) throw error
        sendJson(response, { code: error.code, message: error.message }, 500)
      }
    },
    { tls: true },
  )

  /** A rune with these restrictions, as `createrune` takes them. */
  function restricted(restrictions: Restrictions): string {
    const rune = Buffer.from(crypto.getRandomValues(new Uint8Array(48))).toString('base64url')
    runes.set(rune, { restrictions })
    return rune
  }

  return {
    ...standIn,
    restricted,
    /** A rune for only these methods. Default: for all. */
    rune: (...methods: string[]) =>
      restricted(methods.length > 0 ? [methods.map((each) => `method=${each}`)] : []),
  }
}

function rpcError(code: number, message: string): Error & { code: number } {
  return Object.assign(new Error(message), { code })
}

function isRpcError(error: unknown): error is Error & { code: number } {
  return error instanceof Error && 'code' in error && typeof error.code === 'number'
}
