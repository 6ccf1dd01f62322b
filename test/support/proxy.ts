/**
 * A loopback proxy in front of a server that may restart on another port. The test decides what happens to
 * requests with a payment credential.
 */
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { After } from './folder.ts'
import { serve } from './serving.ts'

export type Proxied = {
  status: number
  headers: Record<string, string[] | undefined>
  body: Buffer
}

export type Proxy = {
  url: string
  /** What happens to the next paid repeat: its answer is lost, or it arrives twenty times at once. */
  next: 'pass' | 'lose the answer' | 'send it 20 times'
  /** The answers to paid repeats so far. */
  paid: Proxied[]
  /** The credential of the last paid repeat. */
  credential: string
}

export async function startProxy(t: After, upstream: { url: string }): Promise<Proxy> {
  async function forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const ask = () => answerOf(upstream.url, incoming, body)
    const isPaid = /^(?:payment|l402|lsat) /i.test(incoming.headers.authorization ?? '')
    if (!isPaid) return write(response, await ask())
    proxy.credential = incoming.headers.authorization ?? ''
    const fate = proxy.next
    proxy.next = 'pass'
    const times = fate === 'send it 20 times' ? 20 : 1
    const answers = await Promise.all(Array.from({ length: times }, ask))
    proxy.paid.push(...answers)
    const [answer] = answers
    if (fate === 'lose the answer' || !answer) incoming.socket.destroy()
    else write(response, answer)
  }

  const url = await serve(t, (incoming, response) => {
    forward(incoming, response).catch(() => response.destroy())
  })
  const proxy: Proxy = { url, next: 'pass', paid: [], credential: '' }
  return proxy
}

function write(response: ServerResponse, { status, headers, body }: Proxied): void {
  for (const [name, lines] of Object.entries(headers)) {
    if (lines && !HOP_BY_HOP.has(name)) response.setHeader(name, lines)
  }
  response.writeHead(status)
  response.end(body)
}

/** Headers that belong to a connection, not to the message (RFC 9110 §7.6.1). */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding'])

function answerOf(url: string, incoming: IncomingMessage, body: Buffer): Promise<Proxied> {
  const headers = Object.fromEntries(
    Object.entries(incoming.headersDistinct)
      .filter(([name]) => !HOP_BY_HOP.has(name))
      .map(([name, lines = []]) => [name, lines.length === 1 ? lines[0] : lines]),
  )
  return new Promise((resolve, reject) => {
    const sent = request(
      url + incoming.url,
      { method: incoming.method ?? 'GET', headers },
      async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk as Buffer)
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headersDistinct,
          body: Buffer.concat(chunks),
        })
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}
