/** An API behind each form of the middleware, over real sockets. */
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, constants, type Http2ServerResponse, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Gate } from '../../src/gate-middleware/middleware.ts'
import { serve } from '../support/serving.ts'

export const FORMS = ['express', 'fastify', 'fastify over HTTP/2', 'fetch'] as const
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
  const watch = (response: ServerResponse | Http2ServerResponse): void => {
    seen.arrived++
    response.on('close', () => {
      seen.over++
      const isWhole =
        'stream' in response ? response.stream.rstCode === 0 : response.writableFinished
      if (!isWhole) seen.gone++
    })
  }
  const isHttp2 = form === 'fastify over HTTP/2'
  if (form === 'fastify' || isHttp2) {
    const options = { forceCloseConnections: true }
    // The types of both differ in nothing that matters here.
    const app = isHttp2
      ? (Fastify({ ...options, http2: true }) as unknown as FastifyInstance)
      : Fastify(options)
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
    const url = `http://127.0.0.1:${port}/render/cat`
    return { seen, send: (headers: Fields = {}) => (isHttp2 ? sendHttp2 : sendHttp1)(url, headers) }
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
  return { seen, send: (headers: Fields = {}) => sendHttp1(`${url}/render/cat`, headers) }
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

type Fields = Record<string, string>

/** Sends a request on a new connection. */
function sendHttp1(url: string, headers: Fields) {
  const { answer, begun, read, fail } = anAnswer()
  const outgoing = request(url, { method: 'POST', agent: false, headers })
  outgoing.on('error', fail)
  outgoing.on('response', (incoming) => {
    read(incoming, { status: incoming.statusCode ?? 0, headers: incoming.headers })
  })
  outgoing.end()
  return { answer, begun, hangUp: () => void outgoing.destroy() }
}

function sendHttp2(url: string, headers: Fields) {
  const { answer, begun, read, fail } = anAnswer()
  const { origin, pathname } = new URL(url)
  const session = connect(origin)
  const stream = session.request({ ':method': 'POST', ':path': pathname, ...headers })
  stream.on('error', fail)
  stream.on('close', () => session.close())
  stream.on('response', ({ ':status': status = 0, ...fields }) => {
    read(stream, { status, headers: fields })
  })
  stream.end()
  return { answer, begun, hangUp: () => stream.close(constants.NGHTTP2_CANCEL) }
}

type Head = { status: number; headers: IncomingHttpHeaders }

function anAnswer() {
  /** Resolves when the first bytes of the body have arrived. */
  const begun = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<Head & { body: Buffer }>()
  answer.promise.catch(() => {})
  return {
    begun: begun.promise,
    answer: answer.promise,
    fail: answer.reject,
    read(stream: Readable, head: Head): void {
      const chunks: Buffer[] = []
      stream.on('error', answer.reject)
      stream.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        begun.resolve()
      })
      stream.on('end', () => answer.resolve({ ...head, body: Buffer.concat(chunks) }))
    },
  }
}
