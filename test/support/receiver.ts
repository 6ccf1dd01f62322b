/** A server that alerts are sent to. It notes what comes, and echoes the nonce of a test. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import type { After } from './folder.ts'
import { serve } from './serving.ts'
import { until } from './until.ts'

export type Received = {
  path: string
  headers: IncomingHttpHeaders
  text: string
  body: {
    type?: string
    timestamp?: string
    data?: Record<string, unknown>
  } & Record<string, unknown>
}

export type Receiver = Awaited<ReturnType<typeof aReceiver>>

export async function aReceiver(t: After, port = 0) {
  const server = createServer(async (request, response) => {
    const text = await readText(request)
    const one = {
      path: request.url ?? '',
      headers: request.headers,
      text,
      body: JSON.parse(text) as Received['body'],
    }
    receiver.received.push(one)
    if (receiver.answer) return receiver.answer(one, response)
    response.writeHead(204, echoOf(one)).end()
  })
  const { host } = new URL(await serve(t, server, port))
  const receiver = {
    /** `127.0.0.1:port`, as MAYFLY_ALLOWED_HOSTS names it. */
    host,
    url: `http://${host}/hook`,
    received: [] as Received[],
    /** Replaces the usual answer. Null: 204 with the nonce in a header. */
    answer: null as ((received: Received, response: ServerResponse) => void) | null,
    /** Those of this type, once so many have come. */
    until: (type: string, count = 1): Promise<Received[]> =>
      until(`${count} of ${type}`, () => {
        const some = receiver.received.filter(({ headers }) => headers['mayfly-alert'] === type)
        return some.length >= count ? some : null
      }),
  }
  return receiver
}

/** The header that answers a test. */
export function echoOf({ body }: Received): Record<string, string> {
  const nonce = body.data?.nonce
  return typeof nonce === 'string' ? { 'x-echo': nonce } : {}
}

/** What the reference library makes of a message. @throws WebhookVerificationError */
export function verified(received: Received, secret: string): unknown {
  return new Webhook(secret).verify(received.text, received.headers as Record<string, string>)
}
