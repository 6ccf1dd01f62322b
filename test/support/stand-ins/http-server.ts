/** A loopback HTTP or HTTPS server for a stand-in. A test can replace its answers. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { freePort } from '../ports.ts'
import { CERTIFICATE, CERTIFICATE_KEY } from './certificate.ts'

/** Handles a request. Returns true if it has answered, or if the request must stay without an answer. */
export type Fault = (request: { line: string }, response: ServerResponse) => boolean

/** Its line, such as `POST /v1/invoice`, body and headers. */
type StandInRequest = { line: string; body: string; headers: IncomingMessage['headers'] }

export type StandInHandler = (
  request: StandInRequest,
  response: ServerResponse,
) => void | Promise<void>

export async function startStandIn(
  handle: StandInHandler,
  { tls = false }: { tls?: boolean } = {},
) {
  const requests: StandInRequest[] = []
  let fault: Fault | null = null
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const line = `${request.method} ${request.url}`
    let body = ''
    for await (const chunk of request) body += chunk
    const asked = { line, body, headers: request.headers }
    requests.push(asked)
    if (fault?.(asked, response)) return
    await handle(asked, response)
  }
  const server = tls
    ? createTlsServer({ cert: CERTIFICATE, key: CERTIFICATE_KEY }, answer)
    : createServer(answer)
  // Nobody else gets it once the stand-in is closed.
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    server,
    baseUrl: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    /** All requests so far. */
    requests,
    /** Replaces the stand-in's answers to the next requests. Null ends this. */
    spoil(next: Fault | null): void {
      fault = next
    },
    close: () =>
      new Promise<void>((resolve) => {
        // Resolves also if the server is already closed.
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

export function sendText(response: ServerResponse, text: string, status: number): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=UTF-8' })
  response.end(text)
}
