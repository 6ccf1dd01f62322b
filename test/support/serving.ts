/** Servers on loopback that end with their test, and requests that they pass on to another one. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { After } from './folder.ts'

/** Listens until the test ends. `port` 0: any. Its origin, as `http://127.0.0.1:port`. */
export async function serve(t: After, served: RequestListener | Server, port = 0): Promise<string> {
  const server = typeof served === 'function' ? createServer(served) : served
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => open.add(socket))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.after(() => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const socket of open) socket.destroy()
    return closed
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export type Passed = {
  sent: Buffer
  status: number
  headers: Record<string, string>
  answered: Buffer
}

/** Headers that belong to a connection, or that fetch has taken care of. */
const OF_ONE_HOP = new Set([
  ...['host', 'connection', 'content-length', 'content-encoding', 'transfer-encoding'],
])

/** Sends a request on, and returns what was sent and the answer. */
export async function passOn(upstream: string, incoming: IncomingMessage): Promise<Passed> {
  const sent = await buffer(incoming)
  const answer = await fetch(upstream + incoming.url, {
    method: incoming.method ?? 'GET',
    headers: withoutHop(Object.entries(incoming.headers).map(([name, v]) => [name, String(v)])),
    ...(sent.length > 0 ? { body: new Uint8Array(sent) } : {}),
  })
  const answered = Buffer.from(await answer.arrayBuffer())
  return { sent, status: answer.status, headers: withoutHop([...answer.headers]), answered }
}

const withoutHop = (headers: [string, string][]): Record<string, string> =>
  Object.fromEntries(headers.filter(([name]) => !OF_ONE_HOP.has(name)))

export function answerWith(response: ServerResponse, { status, headers, answered }: Passed): void {
  response.writeHead(status, headers).end(status === 204 ? undefined : answered)
}

/** Answers a request, or returns false to pass it on. */
type Answering = (path: string, response: ServerResponse, incoming: IncomingMessage) => boolean

/** Starts a proxy in front of a server. Its test answers some requests itself, or lets them hang. */
export function between(t: After, upstream: string, answering: Answering): Promise<string> {
  return serve(t, async (incoming, response) => {
    if (answering(incoming.url ?? '/', response, incoming)) return
    try {
      answerWith(response, await passOn(upstream, incoming))
    } catch {
      response.destroy()
    }
  })
}
