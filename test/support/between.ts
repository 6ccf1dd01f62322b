/** A loopback proxy whose test answers some requests itself, or lets them hang. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { After } from './folder.ts'

/** Answers a request, or returns false to pass it on. */
export type Answering = (
  path: string,
  response: ServerResponse,
  incoming: IncomingMessage,
) => boolean

/** Starts the proxy in front of a server. Everything ends with the test. */
export async function between(t: After, upstream: string, answering: Answering): Promise<string> {
  const server = createServer(async (incoming, response) => {
    const { method = 'GET', url = '/' } = incoming
    if (answering(url, response, incoming)) return
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const { host, connection, ...headers } = incoming.headers
    try {
      const answer = await fetch(upstream + url, {
        method,
        headers: headers as Record<string, string>,
        ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
      })
      response.writeHead(answer.status, Object.fromEntries(answer.headers))
      response.end(Buffer.from(await answer.arrayBuffer()))
    } catch {
      response.destroy()
    }
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
