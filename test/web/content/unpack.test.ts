import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { encodingsOf, MAX_UNPACKED_BYTES, unpack } from '../../../src/web/content/unpack.ts'

const plain = new Uint8Array(Buffer.from('{"hello":"world"}'.repeat(100)))
const bytes = (buffer: Buffer): Uint8Array<ArrayBuffer> => new Uint8Array(buffer)

suite('packed bodies', () => {
  test('gzip and deflate, with and without a frame, are undone in the reverse order', async () => {
    for (const [header, packed] of [
      ['gzip', gzipSync(plain)],
      [' X-GZIP ', gzipSync(plain)],
      ['deflate', deflateSync(plain)],
      ['deflate', deflateRawSync(plain)],
      ['gzip, identity, deflate', deflateSync(gzipSync(plain))],
    ] as const) {
      const result = await unpack(bytes(packed), encodingsOf(header))
      assert.deepEqual(result.bytes, plain, header)
      assert.equal(result.remark, null)
    }
    assert.deepEqual(await unpack(plain, encodingsOf(null)), {
      bytes: plain,
      undone: [],
      remark: null,
    })
  })

  test('a body that unpacks to gigabytes is cut at the limit', async () => {
    const bomb = bytes(gzipSync(Buffer.alloc(4 * MAX_UNPACKED_BYTES)))
    const result = await unpack(bomb, ['gzip'])
    assert.equal(result.bytes.length, MAX_UNPACKED_BYTES)
    assert.match(result.remark ?? '', /too large to unpack/)
    const nested = bytes(gzipSync(gzipSync(Buffer.alloc(4 * MAX_UNPACKED_BYTES))))
    assert.ok((await unpack(nested, ['gzip', 'gzip'])).bytes.length <= MAX_UNPACKED_BYTES)
  })

  test('no more is unpacked than is kept', async (t) => {
    const Platform = globalThis.DecompressionStream
    let made = 0
    t.after(() => Object.assign(globalThis, { DecompressionStream: Platform }))
    function Counting(format: CompressionFormat) {
      const { readable, writable } = new Platform(format)
      const counted = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          made += chunk.length
          controller.enqueue(chunk)
        },
      })
      return { writable, readable: readable.pipeThrough(counted) }
    }
    Object.assign(globalThis, { DecompressionStream: Counting })
    await unpack(bytes(gzipSync(Buffer.alloc(4 * MAX_UNPACKED_BYTES))), ['gzip'])
    assert.ok(made > MAX_UNPACKED_BYTES && made < 2 * MAX_UNPACKED_BYTES, `${made}`)
  })

  test('what cannot be unpacked is left as it was sent, and said', async () => {
    const packed = bytes(brotliCompressSync(plain))
    const unknown = await unpack(packed, ['aws-chunked'])
    assert.deepEqual(unknown.bytes, packed)
    assert.match(unknown.remark ?? '', /cannot unpack aws-chunked/)
    const lie = await unpack(plain, ['gzip'])
    assert.deepEqual(lie.bytes, plain)
    assert.match(lie.remark ?? '', /cannot unpack gzip, or the data is damaged/)
    const cut = await unpack(bytes(gzipSync(Buffer.alloc(100_000, 'a')).subarray(0, 100)), ['gzip'])
    assert.match(cut.remark ?? '', /data is damaged/)
    const often = await unpack(plain, encodingsOf('gzip,'.repeat(1000)))
    assert.match(often.remark ?? '', /too many encodings/)
  })
})
