/**
 * Requests of the service to its own HTTP interface, without a network. They pass through the same server as
 * those of other clients: its parser, hooks, limits, budgets and errors. So a tool can do what HTTP can, and
 * nothing else.
 */
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { duplexPair } from 'node:stream'
import type { App } from '../../http/app.ts'

/** A page of events ends before 6 MiB; one event can be larger, and so can a ciphertext. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** Names the caller to limits and orders, whose addresses a request in this process does not show. */
export type Caller = {
  /** The peer of the caller's own connection. */
  peer: string
  /** `Host`, and the headers of proxies, as the caller's request had them. */
  forwarding: Record<string, string[]>
  signal: AbortSignal
}

export type Asked = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  headers?: OutgoingHttpHeaders
  body?: Uint8Array
}

export type Answered = { status: number; headers: IncomingMessage['headers']; body: Buffer }

export type AskOwn = (caller: Caller, asked: Asked) => Promise<Answered>

/** The caller is gone, or its answer is too large. */
export class Unanswered extends Error {
  override name = 'Unanswered'
}

export const createOwnRequests =
  (app: App): AskOwn =>
  (caller, { method, path, headers = {}, body }) =>
    new Promise((resolve, reject) => {
      const [ours, theirs] = duplexPair()
      Object.defineProperty(theirs, 'remoteAddress', { value: caller.peer })
      // Neither end notices by itself that the other was destroyed.
      ours.once('close', () => theirs.destroy())
      theirs.once('close', () => ours.destroy())
      const fail = (): void => reject(new Unanswered())
      // Node's documented way to serve any duplex stream.
      app.server.emit('connection', theirs)
      const request = httpRequest({
        ...{ method, path, signal: caller.signal },
        createConnection: () => ours,
        headers: {
          host: 'localhost',
          connection: 'close',
          ...caller.forwarding,
          ...(body ? { 'content-length': body.length } : {}),
          ...headers,
        },
      })
      request.on('error', fail)
      request.on('response', (response) => {
        const chunks: Buffer[] = []
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > MAX_ANSWER_BYTES) return void request.destroy(new Unanswered())
          chunks.push(chunk)
        })
        response.on('error', fail)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          }),
        )
      })
      request.end(body)
    })
