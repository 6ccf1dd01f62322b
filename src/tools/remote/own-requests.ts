/**
 * Requests of the service to its own HTTP interface, without a network. They pass through the same server as
 * those of other clients: its parser, hooks, limits, budgets and errors. So a tool can do what HTTP can, and
 * nothing else.
 */
import { request as httpRequest } from 'node:http'
import { duplexPair } from 'node:stream'
import type { App } from '../../http/app.ts'
import { boundedBytes } from '../../lib/bytes.ts'
import { parseJsonBytes } from '../../lib/json.ts'
import type { Answered, Asked } from '../answers.ts'
import type { ToolCall } from '../tools.ts'

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

type OwnRequest = Asked & { headers?: Record<string, string>; body?: string | Uint8Array }

/** A call of a tool, with what asks the service for its caller. */
export type Call = ToolCall & {
  ask(asked: OwnRequest): ReturnType<ReturnType<typeof createOwnRequests>>
}

/** The caller is gone, or its answer is too large. */
export class Unanswered extends Error {
  override name = 'Unanswered'
}

export const createOwnRequests =
  (app: App) =>
  (
    caller: Caller,
    { method, path, headers = {}, json, ...asked }: OwnRequest,
  ): Promise<Answered & { bytes: Uint8Array }> =>
    new Promise((resolve, reject) => {
      const body = json === undefined ? asked.body : JSON.stringify(json)
      const [ours, theirs] = duplexPair()
      Object.defineProperty(theirs, 'remoteAddress', { value: caller.peer })
      // Neither end notices by itself that the other was destroyed.
      ours.once('close', () => theirs.destroy())
      theirs.once('close', () => ours.destroy())
      const fail = (): void => reject(new Unanswered())
      // Node's documented way to serve any duplex stream.
      app.server.emit('connection', theirs)
      const request = httpRequest({
        method,
        path,
        signal: caller.signal,
        createConnection: () => ours,
        headers: {
          host: 'localhost',
          connection: 'close',
          ...caller.forwarding,
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      })
      request.on('error', fail)
      request.on('response', (response) => {
        const { statusCode: status = 0, headers } = response
        const isJson = headers['content-type']?.includes('json') === true
        boundedBytes(response, MAX_ANSWER_BYTES, () => new Unanswered()).then((bytes) => {
          const body = (isJson && parseJsonBytes(bytes)) || null
          resolve({ status, bytes, body, header: (name) => headers[name]?.toString() })
        }, fail)
      })
      request.end(body)
    })
