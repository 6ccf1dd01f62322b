import assert from 'node:assert/strict'
import { createCipheriv, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { openWhisper } from '../../src/client/index.ts'
import { PULSE_GUIDE } from '../../src/pulse/guide.ts'
import { PulseSettings } from '../../src/pulse/schema.ts'
import { WHISPER_GUIDE } from '../../src/whisper/guide.ts'

/** Follows the guide, and knows nothing else of the envelope. */
function envelopeOf(data: Buffer, key: Buffer): Buffer {
  const [name, type] = [Buffer.from('door.txt'), Buffer.from('text/plain')]
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const head = [Buffer.of(name.length), name, Buffer.of(type.length), type, length]
  const plaintext = Buffer.concat([...head, data])
  const l = Math.max(plaintext.length, 256)
  const e = Math.floor(Math.log2(l))
  const s = Math.floor(Math.log2(e)) + 1
  const step = 2 ** (e - s)
  const zeros = Buffer.alloc(Math.ceil(l / step) * step - plaintext.length)
  const iv = randomBytes(12)
  const aes = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from('mayfly/whisper/1'))
  const sealed = [aes.update(Buffer.concat([plaintext, zeros])), aes.final(), aes.getAuthTag()]
  return Buffer.concat([Buffer.of(1), iv, ...sealed])
}

test('an envelope that is made as /llms.txt says opens with the SDK, whatever its length', async () => {
  for (const said of ['32 fresh random bytes', 'next multiple of 2^(e-s)', '256 if fewer']) {
    assert.ok(WHISPER_GUIDE.includes(said), said)
  }
  for (const bytes of [0, 1, 200, 256, 1_000, 1_024, 65_537]) {
    const [data, key] = [randomBytes(bytes), randomBytes(32)]
    const opened = await openWhisper(envelopeOf(data, key), key)
    assert.deepEqual(Buffer.from(opened.data), data)
    assert.deepEqual([opened.name, opened.mediaType], ['door.txt', 'text/plain'])
  }
})

test('/llms.txt gives the bounds that the settings of a monitor are checked for', () => {
  const { name, description, expectedIntervalSeconds, graceSeconds } = JSON.parse(
    JSON.stringify(PulseSettings.properties),
  ) as Record<string, Record<string, number> | undefined>
  const guide = PULSE_GUIDE.replaceAll(/\s+/g, ' ')
  for (const said of [
    `up to ${name?.maxLength} characters, a description ${description?.maxLength}`,
    `${expectedIntervalSeconds?.minimum} to ${expectedIntervalSeconds?.maximum} seconds`,
    `a grace ${graceSeconds?.minimum} to ${graceSeconds?.maximum}`,
  ]) {
    assert.ok(guide.includes(said), said)
  }
})
