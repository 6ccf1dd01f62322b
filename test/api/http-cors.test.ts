import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask } from '../support/http.ts'
import { startServer } from '../support/server.ts'

const OURS =
  'Authorization, Content-Type, Idempotency-Key, Accept-Payment, Accept-Authenticate, ' +
  'Payment-Preimage, X-Payment-Protocol, X-Owner-Token, X-Whisper-Max-Bytes, X-Whisper-Read-Limit, X-Whisper-Receipt, ' +
  'X-Whisper-Reveal-At, X-Whisper-Reveal-When, X-Pulse-Settings, X-Gate-Project, X-Gate-Route, X-Gate-Method, X-Gate-Path'
const ID = 'catch_0000000000000000000000'

test('a preflight cannot put a header of its own into the answer', async (t) => {
  const { url } = await startServer(t)
  for (const asked of ['a: b', '(x)', 'é', 'x'.repeat(3_000)]) {
    const { headers } = await ask(url, 'OPTIONS /api/catalog', {
      headers: `Origin: https://a.test\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: ${asked}\r\n`,
    })
    assert.equal(headers.get('access-control-allow-headers'), OURS)
  }
})

test('every page may read the API, and only the API', async (t) => {
  const { url } = await startServer(t)
  for (const [path, isOpen] of [
    ['/api/catalog', true],
    ['/api/nowhere', true],
    ['/api/%zz', true],
    [`/c/${ID}`, true],
    ['http://mayfly.test/api/catalog', true],
    ['/openapi.json', true],
    ['/health', false],
    ['/simulator/pay', false],
    ['/nowhere', false],
  ] as const) {
    const { headers } = await ask(url, `GET ${path}`)
    assert.equal(headers.get('access-control-allow-origin'), isOpen ? '*' : null, path)
  }
})
