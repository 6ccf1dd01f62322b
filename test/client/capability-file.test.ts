import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  createMayfly,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from '../../src/client/index.ts'
import { simulatorWallet } from '../../src/client/wallets/simulator.ts'
import { startServer } from '../support/server.ts'

test('a capability of each product is read back as it was bought', async (t) => {
  const { url: baseUrl } = await startServer(t)
  const mayfly = createMayfly({ baseUrl, wallet: simulatorWallet({ baseUrl }) })
  const whisper = await mayfly.buyWhisper({ planId: 'spark', data: Buffer.from('x') })
  const { code, ...withoutCode } = whisper
  const data = Buffer.from('x')
  const withReceipt = await mayfly.buyWhisper({ planId: 'spark', data, receipt: true })
  assert.ok(withReceipt.receiptToken)
  const saved: SavedCapability[] = [
    { capability: await mayfly.buyCatch({ planId: 'spark' }), baseUrl, planId: 'spark' },
    { capability: await mayfly.buyPulse({ planId: 'spark' }), baseUrl },
    { capability: whisper, baseUrl },
    { capability: withoutCode, baseUrl },
    { capability: withReceipt, baseUrl },
  ]
  for (const each of saved) {
    const text = formatCapability(each)
    assert.deepEqual(parseCapability(text), each)
    assert.equal(text.at(-1), '\n')
  }
  const text = formatCapability({ capability: whisper, baseUrl: `${baseUrl}/` })
  assert.equal(parseCapability(text)?.baseUrl, baseUrl)
})

test('reading a capability drops what it does not know, and refuses what is not whole', async (t) => {
  const { url: baseUrl } = await startServer(t)
  const mayfly = createMayfly({ baseUrl, wallet: simulatorWallet({ baseUrl }) })
  const capability = await mayfly.buyCatch({ planId: 'spark' })
  const monitor = await mayfly.buyPulse({ planId: 'spark' })
  const good = JSON.parse(formatCapability({ capability, baseUrl, planId: 'spark' }))
  const read = (changes: object): SavedCapability | null =>
    parseCapability(JSON.stringify({ ...good, ...changes }))
  assert.deepEqual(read({ later: 1 }), { capability, baseUrl, planId: 'spark' })
  // As a line of `curl -K` it would be two, and write a file.
  assert.equal(read({ baseUrl: `${baseUrl}/a"\noutput = "x` }), null)
  assert.equal(read({ baseUrl: `${baseUrl}\n` })?.baseUrl, baseUrl)
  for (const changes of [
    { mayfly: 2 },
    { mayfly: '1' },
    { product: 'gate' },
    { product: 'pulse' },
    { product: 'toString' },
    { publicId: monitor.publicId },
    { ownerToken: capability.ingestToken },
    { ownerToken: `${capability.ownerToken.slice(0, -1)}!` },
    { ingestToken: undefined },
    { expiresAt: 'tomorrow' },
    { expiresAt: '2026-99-99T00:00:00Z' },
    { planId: 'gold' },
    { baseUrl: 'javascript:alert(1)' },
    { baseUrl: 'https://mayfly.example@evil.example' },
    { baseUrl: 'https://mayfly.example/?to=1' },
    { baseUrl: 'https://mayfly.example/another/service' },
    { baseUrl: undefined },
  ]) {
    assert.equal(read(changes), null, JSON.stringify(changes))
  }
  assert.throws(() => formatCapability({ capability, baseUrl: 'nowhere' }), RangeError)
  const [one, other] = await Promise.all(
    ['x', 'y'].map((text) => mayfly.buyWhisper({ planId: 'spark', data: Buffer.from(text) })),
  )
  assert.ok(one && other)
  const mixed = { ...one, code: other.code }
  assert.throws(() => formatCapability({ capability: mixed, baseUrl }), RangeError)
})

test('any text gives a capability or null, and nothing else', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      assert.equal(parseCapability(text), null)
    }),
  )
  assert.equal(parseCapability(' '.repeat(10_000)), null)
  assert.equal(parseCapability('[]'), null)
})
