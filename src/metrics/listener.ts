/** The listener for Prometheus and for the operator's page. Its own port keeps proxies from making it public. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isLoopback, isLoopbackHost } from '../protocol/ip-address.ts'
import { PAGE_POLICY } from './operator-page.ts'

/** More connections than scrapers need. Node closes any others at once. */
const MAX_CONNECTIONS = 32
const TIMEOUT_MS = 10_000

/** What is served, by path. */
type Served = { contentType: string; text(): Promise<string>; isForLoopback?: true }

/** @throws Node's error if it cannot listen on the address. */
export async function listenForScrapes(
  metrics: { contentType: string; text(): Promise<string>; page(): Promise<string> },
  { host, port }: { host: string; port: number },
) {
  const served: Record<string, Served> = {
    '/metrics': { contentType: metrics.contentType, text: metrics.text },
    '/': {
      contentType: 'text/html; charset=utf-8',
      text: metrics.page,
      isForLoopback: true,
    },
  }
  const server = createServer({ requestTimeout: TIMEOUT_MS }, (request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    const one = Object.hasOwn(served, path) ? served[path] : undefined
    if (!one) return response.writeHead(404).end()
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return response.writeHead(405, { allow: 'GET, HEAD' }).end()
    }
    if (one.isForLoopback && !isFromHere(request)) {
      return response.writeHead(403).end('Open this page on the machine itself, as 127.0.0.1.\n')
    }
    return send(one, request, response)
  })
  server.maxConnections = MAX_CONNECTIONS
  // Rejects with the error of the server, if it has one.
  await once(server.listen(port, host), 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function send(
  { contentType, text }: Served,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await text().catch(() => null)
  if (body === null) return void response.writeHead(500).end()
  response.writeHead(200, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'content-security-policy': PAGE_POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** A page of another site must not read it through a name that leads to this machine (DNS rebinding). */
function isFromHere({ headers, socket }: IncomingMessage): boolean {
  return isLoopbackHost(headers.host) && isLoopback(socket.remoteAddress ?? '')
}
