import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { anInbox } from '../support/catch.ts'
import { assertError, errorsLogged } from '../support/http.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { exchange } from '../support/socket.ts'
import { query } from '../support/store.ts'

/** Short enough to wait for. What is bought is bought before, with all the time that a busy machine needs. */
const TIMEOUTS = { timeouts: { requestMs: 4_000, headersMs: 3_000, checkEveryMs: 50 } }

// Each waits for a timeout of a server of its own.
suite('a request that is broken off', { concurrency: true }, () => {
  test('a body that stops half-way is timed out, and nothing of it is stored', async (t) => {
    const server = await startServer(t)
    const inbox = await anInbox(server)
    await server.restart(TIMEOUTS)
    const half = 'Host: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n'
    const key = `Idempotency-Key: ${randomUUID()}\r\n`
    const chunked =
      'Host: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n5\r\n{"pl'
    const ignored = exchange(server.url, `DELETE /api/catch/x HTTP/1.1\r\n${half}\r\n{"half":`)
    const answers = await Promise.all([
      exchange(server.url, `POST /c/${inbox.publicId} HTTP/1.1\r\n${half}\r\n{"half":`),
      exchange(server.url, `POST /c/${inbox.publicId} HTTP/1.1\r\n${chunked}`),
      exchange(server.url, `GET /c/${inbox.publicId} HTTP/1.1\r\n${half}\r\n{"half":`),
      exchange(server.url, `POST /api/payments/catch HTTP/1.1\r\n${key}${half}\r\n{"planId":`),
      exchange(server.url, `POST /api/payments/catch HTTP/1.1\r\n${key}${chunked}`),
      exchange(server.url, `POST /simulator/pay HTTP/1.1\r\n${half}\r\n{"bolt11":`),
    ])
    for (const answer of answers) assertError(answer, '408 request timeout')
    // One that nobody reads is answered before, and its connection ends all the same.
    assert.deepEqual((await ignored).statuses, [401, 408])
    await server.restart()
    assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
    assert.equal(await countOrders(server), 1, 'the one that bought the inbox')
    assert.deepEqual(errorsLogged(server), [])
  })

  test('slow headers are timed out', async (t) => {
    const server = await startServer(t, {}, TIMEOUTS)
    const answers = await Promise.all([
      exchange(server.url, 'GET /health HTTP/1.1\r\nHost: x\r\n'),
      exchange(server.url, 'GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: '),
      exchange(server.url, 'GE'),
      exchange(server.url, ''),
    ])
    for (const answer of answers) assertError(answer, '408 request timeout')
  })

  test('the rest of a body that was timed out is not stored after all', async (t) => {
    const server = await startServer(t)
    const inbox = await anInbox(server)
    await server.restart(TIMEOUTS)
    const { hostname, port } = new URL(server.url)
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    const closed = new Promise((resolve) => socket.on('close', resolve))
    let answer = ''
    socket.setEncoding('latin1')
    socket.on('data', (part) => {
      answer += part
    })
    socket.on('error', () => undefined)
    socket.on('end', () => socket.end('rest'))
    socket.write(`POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhalf`)
    await closed
    assert.match(answer, /^HTTP\/1\.1 408 /)
    await server.restart()
    assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
  })
})

async function countOrders(server: TestServer): Promise<number> {
  return (await query(server, 'select order_id from purchase_order')).length
}
