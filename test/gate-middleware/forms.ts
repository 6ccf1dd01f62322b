/** An API behind each of the three forms of the middleware, over real sockets. */
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import Fastify from 'fastify'
import type { Gate } from '../../src/gate-middleware/middleware.ts'
import { serve } from '../support/serving.ts'

export const FORMS = ['express', 'fastify', 'fetch'] as const
export type Form = (typeof FORMS)[number]

type Answered = {
  status?: number
  headers?: Record<string, string>
  body?: string | Uint8Array<ArrayBuffer>
}

/** What the API does with an admitted request. */
export type Handler = (request: { range: string | null }) => Promise<Answered>

/** `POST /render/cat` in this form. If the handler throws, the answer is 500, as in frameworks. */
export async function anApi(
  t: TestContext,
  { form, gate }: { form: Form; gate: Gate },
  handler: Handler,
) {
  /** Numbers of requests: that have arrived, that are over, and whose client had gone before. */
  const seen = { arrived: 0, over: 0, gone: 0 }
  const watch = (response: ServerResponse): void => {
    seen.arrived++
    response.once('close', () => {
      seen.over++
      if (!response.writableFinished) seen.gone++
    })
  }
  if (form === 'fastify') {
    const app = Fastify({ forceCloseConnections: true })
    t.after(() => app.close())
    app.addHook('onRequest', async (_request, reply) => watch(reply.raw))
    app.post('/render/cat', { preParsing: gate.fastify('render') }, async ({ headers }, reply) => {
      const {
        status = 200,
        body = '',
        headers: own = {},
      } = await handler({
        range: headers.range ?? null,
      })
      const bytes = typeof body === 'string' ? body : Buffer.from(body)
      return reply.code(status).headers(own).send(bytes)
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    return { url: `http://127.0.0.1:${port}/render/cat`, seen }
  }
  const enter = gate.express('render')
  const fetchForm = gate.fetch('render', async (visit) => {
    const {
      status = 200,
      body = '',
      headers = {},
    } = await handler({
      range: visit.headers.get('range'),
    })
    return new Response(body, { status, headers })
  })
  const url = await serve(t, (incoming, response) => {
    watch(response)
    if (form === 'fetch') return void adapted(fetchForm, incoming, response)
    enter(incoming, response, (error) => {
      if (error) return void response.writeHead(500).end()
      handler({ range: incoming.headers.range ?? null }).then(
        ({ status = 200, headers = {}, body = '' }) =>
          response.writeHead(status, headers).end(body),
        () => response.writeHead(500).end('failed'),
      )
    })
  })
  return { url: `${url}/render/cat`, seen }
}

/** Runs a fetch handler like servers on Node. A disconnect aborts the request and cancels the body. */
async function adapted(
  handle: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const going = new AbortController()
  response.once('close', () => void (response.writableFinished || going.abort()))
  try {
    const answer = await handle(
      new Request(`http://api.example.com${incoming.url}`, {
        method: incoming.method ?? '',
        headers: Object.entries(incoming.headers) as [string, string][],
        signal: going.signal,
      }),
    )
    response.writeHead(answer.status, [...answer.headers].flat())
    if (answer.body === null) return void response.end()
    Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0], {
      signal: going.signal,
    })
      .on('error', () => response.destroy())
      .pipe(response)
  } catch {
    if (!response.headersSent) response.writeHead(500).end('failed')
  }
}

/** Sends a request on a new connection. */
export function send(url: string, headers: Record<string, string> = {}) {
  /** Resolves when the first bytes of the body have arrived. */
  const begun = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<{
    status: number
    headers: IncomingMessage['headers']
    body: Buffer
  }>()
  const outgoing = request(url, { method: 'POST', agent: false, headers })
  outgoing.on('error', answer.reject)
  outgoing.on('response', (incoming) => {
    const chunks: Buffer[] = []
    incoming.on('error', answer.reject)
    incoming.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      begun.resolve()
    })
    incoming.on('end', () => {
      const { statusCode: status = 0, headers: fields } = incoming
      answer.resolve({ status, headers: fields, body: Buffer.concat(chunks) })
    })
  })
  outgoing.end()
  answer.promise.catch(() => {})
  return { answer: answer.promise, begun: begun.promise, hangUp: () => void outgoing.destroy() }
}
