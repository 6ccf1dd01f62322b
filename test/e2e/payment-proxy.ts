/**
 * A loopback proxy in front of a server that may restart on another port. The test decides what happens to
 * requests with a payment credential.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { After } from '../support/folder.ts'
import { send } from '../support/http.ts'
import { serve } from '../support/serving.ts'

type Answer = Awaited<ReturnType<typeof send>>

export async function startProxy(t: After, upstream: { url: string }) {
  const proxy = {
    url: '',
    /** What happens to the next paid repeat: its answer is lost, or it arrives twenty times at once. */
    next: 'pass' as 'pass' | 'lose the answer' | 'send it 20 times',
    /** The answers to paid repeats so far. */
    paid: [] as Answer[],
    /** The credential of the last paid repeat. */
    credential: '',
  }

  async function forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(incoming)
    const { method, headersDistinct: headers } = incoming
    const ask = () =>
      send(upstream.url + incoming.url, { method, headers: endToEnd(headers), body })
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

  proxy.url = await serve(t, (incoming, response) => {
    forward(incoming, response).catch(() => response.destroy())
  })
  return proxy
}

function write(response: ServerResponse, { status, lines, body }: Answer): void {
  response.writeHead(status, endToEnd(lines)).end(body)
}

/** Headers that belong to a connection, not to the message (RFC 9110 §7.6.1). */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding'])

/** A field that stands once has no list: Node refuses some of these. */
const endToEnd = (lines: Answer['lines']) =>
  Object.fromEntries(
    Object.entries(lines)
      .filter(([name]) => !HOP_BY_HOP.has(name))
      .map(([name, values = []]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
  )
