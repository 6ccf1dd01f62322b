import assert from 'node:assert/strict'
import test from 'node:test'
import { createPipelineBuffer, TYPE_OF } from '../../../src/db/postgres/wire.ts'

/** By hand, after the message formats of PostgreSQL's documentation. */
const bytes = (...parts: (string | number[])[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)))

test('a pipeline sends its messages one behind the other', () => {
  const pipeline = createPipelineBuffer()
  const { text, integer, bytes: binary, unspecified } = TYPE_OF
  pipeline.close('m1')
  pipeline.parse('m2', 'select $1', [text, integer])
  pipeline.bind(
    'm2',
    ['é', 42, null, new Uint8Array([0, 255])],
    [text, integer, unspecified, binary],
  )
  pipeline.describe()
  pipeline.execute()
  assert.deepEqual(
    pipeline.sync(),
    bytes(
      ...['C', [0, 0, 0, 8], 'Sm1\0'],
      ...['P', [0, 0, 0, 27], 'm2\0', 'select $1\0', [0, 2, 0, 0, 0, 25, 0, 0, 0, 20]],
      ...['B', [0, 0, 0, 46], '\0', 'm2\0', [0, 4, 0, 0, 0, 0, 0, 0, 0, 1], [0, 4]],
      ...[[0, 0, 0, 2], 'é', [0, 0, 0, 2], '42', [255, 255, 255, 255], [0, 0, 0, 2, 0, 255]],
      [0, 1, 0, 0],
      ...['D', [0, 0, 0, 6], 'P\0'],
      ...['E', [0, 0, 0, 9, 0, 0, 0, 0, 0]],
      ...['S', [0, 0, 0, 4]],
    ),
  )
})

test('a pipeline grows with what is in it, and the next one begins anew', () => {
  const pipeline = createPipelineBuffer()
  const long = ['€'.repeat(100_000), '\u{1f600}'.repeat(50_000)]
  for (const value of long) pipeline.bind('', [value], [TYPE_OF.text])
  const sent = pipeline.sync()
  for (const value of long) assert.ok(sent.includes(value))
  assert.equal(sent.length, 2 * (4 + 1 + 1 + 1 + 2 + 2 + 2 + 4 + 4) + 300_000 + 200_000 + 5)
  assert.deepEqual(pipeline.sync(), bytes('S', [0, 0, 0, 4]))
})

test('a view of larger bytes sends its own', () => {
  const pipeline = createPipelineBuffer()
  const whole = new Uint8Array([1, 2, 3, 4, 5])
  pipeline.bind('', [whole.subarray(1, 3)], [TYPE_OF.bytes])
  assert.ok(pipeline.sync().includes(Buffer.from([0, 0, 0, 2, 2, 3, 0, 1, 0, 0])))
})
