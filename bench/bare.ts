/** Fastify with one route a kind of work, and no store: the ceiling that the rows are ratios of. */
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'

const app = Fastify()
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: 1_048_576 }, (_request, body, done) =>
  done(null, body),
)
app.post('/c/:publicId', async (_request, reply) => reply.code(204).send())
app.post('/p/:publicId', async (_request, reply) => reply.code(204).send())
await app.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.server.address() as AddressInfo
process.stdout.write(`${JSON.stringify({ event: 'listening', url: `http://127.0.0.1:${port}` })}\n`)
