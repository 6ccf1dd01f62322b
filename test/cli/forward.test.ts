import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forward } from '../../src/cli/forward.ts'
import type { CatchEvent } from '../../src/client/index.ts'
import { aReceiver } from '../support/receiver.ts'

test('an alert stays marked when it is forwarded, even if its sender calls the mark hop-by-hop', async (t) => {
  const headers = {
    'mayfly-alert': 'pulse.late',
    'x-other': '1',
    connection: 'mayfly-alert, x-other',
  }
  const receiver = await aReceiver(t)
  const event: CatchEvent = {
    ...{ id: 'x', sequence: 1, receivedAt: '', access: 'public', method: 'POST' },
    ...{ path: '', query: '', contentType: null, body: '{}', bodyEncoding: 'utf8' },
    ...{ bodyBytes: 2, bodySha256: '', sourceIp: '', ipLocation: null },
    headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
  }
  const answer = await forward(event, { to: new URL(receiver.url), onSent: () => undefined })
  assert.equal(answer.status, 204)
  const [got] = receiver.received
  assert.equal(got?.headers['mayfly-alert'], 'pulse.late')
  assert.equal(got?.headers['x-other'], undefined)
})
