/** A receiver that remembers what it is sent. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { After } from './folder.ts'

export type Header = { name: string; value: string }
export type Seen = { method: string; url: string; headers: Header[]; body: Buffer }

/** A server on loopback that keeps what it is sent. */
export async function startEcho(t: After): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const headers: Header[] = []
    for (let i = 0; i < request.rawHeaders.length; i += 2) {
      headers.push({ name: request.rawHeaders[i] ?? '', value: request.rawHeaders[i + 1] ?? '' })
    }
    const { method = '', url = '' } = request
    seen.push({ method, url, headers, body: Buffer.concat(chunks) })
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

/** What a connection and a body's length decide is each client's own. */
export function withoutOwn(headers: Header[]): Header[] {
  const own = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'expect'])
  return headers.filter(({ name }) => !own.has(name.toLowerCase()))
}
