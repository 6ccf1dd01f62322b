/**
 * A real wallet service of NIP-47 (`NWCWalletService` of @getalby/sdk) on a real relay. Only its node is a
 * stand-in: the ledger.
 */
import { randomBytes } from 'node:crypto'
import {
  type Nip47Transaction,
  NWCWalletService,
  NWCWalletServiceKeyPair,
  type NWCWalletServiceRequestHandler,
} from '@getalby/sdk/nwc'
import { pointFromScalar } from 'tiny-secp256k1'
import type { Clock } from '../../../src/lib/clock.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import type { Ledger, LedgerInvoice } from './ledger.ts'

type Answer = { result: undefined; error: { code: string; message: string } }
type Outgoing = { bolt11: string; preimage?: string; state: Nip47Transaction['state'] }
type Encryption = 'nip04' | 'nip44_v2'

export async function startNwcWallet(options: {
  relayUrl: string
  clock: Clock
  own: Ledger
  others?: Ledger
  encryption?: Encryption
  methods?: string[]
}) {
  const { relayUrl, clock, own, others, encryption = 'nip44_v2' } = options
  const methods = options.methods ?? ['get_info', 'make_invoice', 'lookup_invoice', 'pay_invoice']
  const [walletSecret, clientSecret] = [randomBytes(32), randomBytes(32)]
  const keys = new NWCWalletServiceKeyPair(walletSecret.toString('hex'), publicKey(clientSecret))
  const service = new NWCWalletService({ relayUrls: [relayUrl] })
  // The service does not await what it publishes, so nothing would catch the error of a cut connection.
  const send = service.pool.publish.bind(service.pool)
  service.pool.publish = (...event) => send(...event).map((sent) => sent.catch(() => 'cut off'))
  const encrypt = service.encrypt.bind(service)
  let garbled: { text: string; form: 'raw' | undefined } | null = null
  service.encrypt = async (pair, content, type) => {
    if (garbled?.form === 'raw') return garbled.text
    return encrypt(pair, garbled?.text ?? content, type)
  }
  const outgoing = new Map<string, Outgoing>()
  const requests: string[] = []
  let fault: ((method: string) => Answer | null) | null = null

  const failed = (code: string, message: string): Answer => ({
    result: undefined,
    error: { code, message },
  })

  /** A handler. A test can replace its answer, and it refuses methods that the connection does not allow. */
  function handler<Request, Result>(
    method: string,
    handle: (request: Request) => Result | Answer | Promise<Result | Answer>,
  ) {
    return async (request: Request) => {
      requests.push(method)
      const spoilt = fault?.(method)
      if (spoilt) return spoilt
      if (!methods.includes(method)) return failed('RESTRICTED', `${method} is not allowed`)
      const answer = await handle(request)
      return isFailure(answer) ? answer : { result: answer, error: undefined }
    }
  }

  const getInfo = handler('get_info', (_: undefined) => ({
    alias: 'stand-in',
    color: '#000000',
    pubkey: '02'.padEnd(66, 'c'),
    network: 'regtest',
    block_height: 433,
    block_hash: '00'.repeat(32),
    methods: methods as 'get_info'[],
    notifications: ['payment_received' as const],
  }))

  const handlers: NWCWalletServiceRequestHandler = {
    getInfo: () => getInfo(undefined),
    makeInvoice: handler(
      'make_invoice',
      ({ amount, description = '', expiry = 3600 }: MakeInvoice) =>
        incoming(own.make({ amountMsat: amount, memo: description, expirySeconds: expiry })),
    ),
    lookupInvoice: handler('lookup_invoice', ({ payment_hash = '' }: { payment_hash?: string }) => {
      const payment = outgoing.get(payment_hash)
      if (payment) return paymentOf(payment_hash, payment)
      const invoice = own.find(payment_hash)
      return invoice ? incoming(invoice) : failed('NOT_FOUND', 'no such invoice')
    }),
    payInvoice: handler('pay_invoice', async ({ invoice: bolt11 }: { invoice: string }) => {
      const paymentHash = decodeInvoice(bolt11).paymentHash
      const before = outgoing.get(paymentHash)?.state
      if (before === 'settled') return failed('OTHER', 'this invoice has already been paid')
      if (before === 'pending') return failed('OTHER', 'this invoice is already being paid')
      outgoing.set(paymentHash, { bolt11, state: 'pending' })
      await new Promise((resolve) => setImmediate(resolve))
      try {
        const preimage = (others ?? own).pay(bolt11)
        outgoing.set(paymentHash, { bolt11, state: 'settled', preimage })
        return { preimage, fees_paid: 0 }
      } catch (error) {
        outgoing.set(paymentHash, { bolt11, state: 'failed' })
        return failed('PAYMENT_FAILED', error instanceof Error ? error.message : 'no route')
      }
    }),
  }

  const blank = { description: '', description_hash: '', fees_paid: 0, created_at: 0 }

  function incoming(invoice: LedgerInvoice): Nip47Transaction {
    const isPaid = invoice.timesPaid > 0
    return {
      ...blank,
      type: 'incoming',
      state: isPaid ? 'settled' : 'pending',
      invoice: invoice.bolt11,
      description: invoice.memo,
      preimage: isPaid ? invoice.preimage : '',
      payment_hash: invoice.paymentHash,
      amount: invoice.amountMsat,
      created_at: invoice.createdAt / 1000,
      expires_at: invoice.expiresAt / 1000,
      settled_at: isPaid ? Math.floor(clock.now() / 1000) : 0,
    }
  }

  function paymentOf(
    payment_hash: string,
    { bolt11: invoice, state, preimage = '' }: Outgoing,
  ): Nip47Transaction {
    const settled_at = state === 'settled' ? 1 : 0
    const rest = { invoice, amount: 21_000, expires_at: 0, settled_at }
    return { ...blank, ...rest, type: 'outgoing', state, preimage, payment_hash }
  }

  async function publish(kind: number, tags: string[][], content: string): Promise<void> {
    const created_at = Math.floor(Date.now() / 1000)
    const event = await service.signEvent({ kind, created_at, tags, content }, keys.walletSecret)
    await Promise.any(service.pool.publish([relayUrl], event))
  }

  /** Sends the notification of a payment. It can be sent any number of times. */
  async function tell(invoice: LedgerInvoice): Promise<void> {
    const word = { notification_type: 'payment_received', notification: incoming(invoice) }
    const content = await encrypt(keys, JSON.stringify(word), encryption)
    const kind = encryption === 'nip04' ? 23196 : 23197
    await publish(kind, [['p', keys.clientPubkey]], content)
  }

  const unsubscribe = await service.subscribe(keys, handlers)
  const tags = [
    ['encryption', encryption],
    ['notifications', 'payment_received'],
  ]
  await publish(13194, tags, methods.join(' '))
  const forget = own.onSettled((invoice) => void tell(invoice).catch(() => {}))

  return {
    /** The connection string. */
    url:
      `nostr+walletconnect://${keys.walletPubkey}?relay=${encodeURIComponent(relayUrl)}` +
      `&secret=${clientSecret.toString('hex')}`,
    /** The methods of all requests so far. */
    requests,
    /** Replaces the answers of its handlers. */
    spoil(next: typeof fault) {
      fault = next
    },
    /** Sends this text in place of each answer, encrypted unless it is `raw`. Null ends this. */
    garble(text: string | null, form?: 'raw') {
      garbled = text === null ? null : { text, form }
    },
    tell,
    close() {
      forget()
      unsubscribe()
      service.close()
    },
  }
}

type MakeInvoice = { amount: number; description?: string; expiry?: number }

function isFailure(answer: unknown): answer is Answer {
  return typeof answer === 'object' && answer !== null && 'error' in answer
}

/** Nostr's keys are x-only. */
function publicKey(secret: Uint8Array): string {
  const point = pointFromScalar(secret, true)
  return Buffer.from(point ?? [])
    .toString('hex')
    .slice(2)
}
