/** The listener for Prometheus. It has its own port, so that no proxy makes the metrics public. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** More connections than scrapers need. Node closes any others at once. */
const MAX_CONNECTIONS = 32
const TIMEOUT_MS = 10_000

export type MetricsListener = { port: number; close(): Promise<void> }

/** @throws Node's error if it cannot listen on the address. */
export async function listenForScrapes(
  metrics: { contentType: string; text(): Promise<string> },
  { host, port }: { host: string; port: number },
): Promise<MetricsListener> {
  /** Concurrent scrapes share one collection. */
  let collecting: Promise<string> | null = null
  const text = (): Promise<string> => {
    collecting ??= metrics.text().finally(() => {
      collecting = null
    })
    return collecting
  }
  const server = createServer({ requestTimeout: TIMEOUT_MS }, (request, response) => {
    const [path] = (request.url ?? '').split('?')
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (path !== '/metrics' || !isRead) {
      response.writeHead(path === '/metrics' ? 405 : 404, { allow: 'GET, HEAD' }).end()
      return
    }
    text().then(
      (body) => {
        response.writeHead(200, {
          'content-type': metrics.contentType,
          'cache-control': 'no-store',
          'content-length': Buffer.byteLength(body),
        })
        response.end(request.method === 'HEAD' ? undefined : body)
      },
      () => response.writeHead(500).end(),
    )
  })
  server.maxConnections = MAX_CONNECTIONS
  await listening(server, host, port)
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
