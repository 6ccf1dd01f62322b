/**
 * A tiny paid API. Each route has a price per picture, and payments go to the project's own Lightning
 * Address. `mayfly gate project add` prints the values of the three settings.
 */
import { createServer, type Server } from 'node:http'
import { createGate } from '../src/gate-middleware/middleware.ts' // mayfly/gate

export type PaidApi = { url: string; server: Server }

export async function startPaidApi(settings: {
  url: string
  projectId: string
  capability: string
  port?: number
}): Promise<PaidApi> {
  const gate = createGate(settings)
  const enter = gate.express('render')
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    enter(request, response, (error) => {
      if (error) {
        response.statusCode = 500
        response.end('{"error":"internal error"}')
        return
      }
      const paid = gate.receiptOf(request)
      response.end(JSON.stringify({ rendered: request.url, sats: paid?.sat }))
    })
  })
  await new Promise<void>((resolve) => server.listen(settings.port ?? 0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, server }
}

if (import.meta.main) {
  const { GATE_URL, GATE_PROJECT, GATE_CAPABILITY } = process.env
  const api = await startPaidApi({
    url: GATE_URL ?? 'http://127.0.0.1:8402',
    projectId: GATE_PROJECT ?? '',
    capability: GATE_CAPABILITY ?? '',
    port: 3000,
  })
  process.stdout.write(`POST ${api.url}/render/anything\n`)
}
