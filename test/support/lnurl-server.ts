/**
 * An LNURL-pay server on loopback, in front of any wallet. It answers like a good provider, unless a test
 * replaces an answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { After } from './folder.ts'
import { serve } from './serving.ts'

/** Makes the invoices, and knows which are paid. */
export type Wallet = {
  createInvoice(amountMsat: number, metadata: string): Promise<string>
  /** Looks up an invoice by its payment hash. */
  lookUp(paymentHash: string): Promise<{ isSettled: boolean; preimage: string | null }>
  paymentHashOf(bolt11: string): string
}

type Step = 'pay' | 'invoice' | 'verify'

/** Replaces an answer: with a value as JSON, or by writing to the response and returning nothing. */
export type Answer = (
  url: URL,
  response: ServerResponse,
  usual: () => Promise<Record<string, unknown>>,
) => unknown

export type LnurlServer = Awaited<ReturnType<typeof startLnurlServer>>

export const METADATA = '[["text/plain","A test"]]'

export async function startLnurlServer(t: After, wallet: Wallet) {
  const origin = await serve(t, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error))
    })
  })
  const { host } = new URL(origin)
  type Asked = { step: Step | 'other'; url: string; headers: IncomingMessage['headers'] }
  const lnurl = {
    /** `host:port`, for the list of allowed hosts. */
    host,
    address: `alice@${host}`,
    requests: [] as Asked[],
    answers: {} as Partial<Record<Step, Answer>>,
  }

  const usual: Record<Step, (url: URL) => Promise<Record<string, unknown>>> = {
    pay: async () => ({
      tag: 'payRequest',
      callback: `http://${host}/cb?user=alice`,
      minSendable: 1_000,
      maxSendable: 1_000_000_000,
      metadata: METADATA,
    }),
    invoice: async (url) => {
      const pr = await wallet.createInvoice(Number(url.searchParams.get('amount')), METADATA)
      return { pr, routes: [], verify: `http://${host}/verify/${wallet.paymentHashOf(pr)}` }
    },
    verify: async (url) => {
      const paymentHash = url.pathname.split('/').at(-1) ?? ''
      const { isSettled, preimage } = await wallet.lookUp(paymentHash)
      return { status: 'OK', settled: isSettled, preimage }
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', `http://${host}`)
    const step = stepOf(url)
    lnurl.requests.push({ step: step ?? 'other', url: url.href, headers: request.headers })
    if (step === null) {
      response.writeHead(404).end()
      return
    }
    const replaced = lnurl.answers[step]
    const asUsual = () => usual[step](url)
    const body = await (replaced ? replaced(url, response, asUsual) : asUsual())
    if (body !== undefined) {
      // Many providers send this type.
      response.writeHead(200, { 'content-type': 'text/html' }).end(JSON.stringify(body))
    }
  }

  return lnurl
}

function stepOf({ pathname }: URL): Step | null {
  if (pathname === '/.well-known/lnurlp/alice') return 'pay'
  if (pathname === '/cb') return 'invoice'
  return pathname.startsWith('/verify/') ? 'verify' : null
}
