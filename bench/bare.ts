/** Fastify with a route for each kind of work and no store. The rows are compared with it. */
import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'

const app = Fastify()
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: 1_048_576 }, (_request, body, done) =>
  done(null, body),
)
app.post('/c/:publicId', async (_request, reply) => reply.code(204).send())
app.post('/p/:publicId', async (_request, reply) => reply.code(204).send())
const ciphertext = randomBytes(64 * 1024)
app.get('/w/:publicId', async (_request, reply) =>
  reply
    .type('application/octet-stream')
    .header('content-disposition', 'attachment')
    .send(ciphertext),
)
await app.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.server.address() as AddressInfo
process.stdout.write(`${JSON.stringify({ event: 'listening', url: `http://127.0.0.1:${port}` })}\n`)
