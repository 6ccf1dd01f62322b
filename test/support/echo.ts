/** A receiver that remembers what it is sent. */
import { buffer } from 'node:stream/consumers'
import type { After } from './folder.ts'
import { serve } from './serving.ts'

export type Header = { name: string; value: string }
export type Seen = { method: string; url: string; headers: Header[]; body: Buffer }

/** A server on loopback that keeps what it is sent. */
export async function startEcho(t: After): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const url = await serve(t, async (request, response) => {
    const body = await buffer(request)
    const headers: Header[] = []
    for (let i = 0; i < request.rawHeaders.length; i += 2) {
      headers.push({ name: request.rawHeaders[i] ?? '', value: request.rawHeaders[i + 1] ?? '' })
    }
    const { method = '', url = '' } = request
    seen.push({ method, url, headers, body })
    response.writeHead(204).end()
  })
  return { url, seen }
}

/** What a connection and a body's length decide is each client's own. */
export function withoutOwn(headers: Header[]): Header[] {
  const own = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'expect'])
  return headers.filter(({ name }) => !own.has(name.toLowerCase()))
}
