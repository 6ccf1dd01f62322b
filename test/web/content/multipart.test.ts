import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { mediaOf, pictureType } from '../../../src/web/content/media.ts'
import { MAX_PARTS, multipartOf } from '../../../src/web/content/multipart.ts'
import { mutatedBytes } from '../../support/arbitraries.ts'

const bytes = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text, 'utf8'))
const text = (part: { bytes: Uint8Array } | undefined): string =>
  Buffer.from(part?.bytes ?? []).toString()

suite('multipart bodies', () => {
  test('a form of the platform is taken apart to the byte, with its names and files', async () => {
    const form = new FormData()
    form.append('title', 'Zoë "the" first\r\n--x')
    form.append('empty', '')
    const file = new Uint8Array([0, 13, 10, 45, 45, 255, 10, 13])
    form.append('a "file"', new File([file], 'ünïcode "1".png', { type: 'image/png' }))
    const request = new Response(form)
    const boundary = mediaOf(request.headers.get('content-type')).parameters.get('boundary')
    const multipart = multipartOf(new Uint8Array(await request.arrayBuffer()), boundary)
    assert.equal(multipart?.remark, null)
    const [title, empty, upload] = multipart?.parts ?? []
    assert.deepEqual(
      [title?.name, title?.filename, text(title)],
      ['title', null, 'Zoë "the" first\r\n--x'],
    )
    assert.deepEqual([empty?.name, text(empty)], ['empty', ''])
    assert.deepEqual([upload?.contentType, upload?.filename], ['image/png', 'ünïcode %221%22.png'])
    assert.deepEqual(upload?.bytes, file)
    assert.equal(multipart?.parts.length, 3)
  })

  test('a preamble, line feeds alone, base64 and filenames in another charset are understood', () => {
    const body = [
      'a preamble\n--b',
      'Content-Disposition: attachment; filename="x"; filename*=UTF-8\'\'na%C3%AFve.txt',
      'Content-Transfer-Encoding: BASE64\n',
      'aGVs\nbG8=',
      '--b  ',
      '',
      '--bc is no boundary',
      '--b--',
      'an epilogue',
    ].join('\n')
    const { parts, remark } = multipartOf(bytes(body), 'b') ?? {}
    assert.deepEqual(
      parts?.map((part) => [part.filename, text(part)]),
      [
        ['naïve.txt', 'hello'],
        [null, '--bc is no boundary'],
      ],
    )
    assert.equal(remark, null)
  })

  test('a body that is cut, or has no such boundary, or too many parts, is told apart', () => {
    const cut = multipartOf(bytes('--b\r\nA: 1\r\n\r\nhel'), 'b')
    assert.deepEqual([cut?.parts.length, text(cut?.parts[0])], [1, 'hel'])
    assert.match(cut?.remark ?? '', /end is missing/)
    for (const boundary of [undefined, '', 'other', 'x'.repeat(71)]) {
      assert.equal(multipartOf(bytes('--b\r\n\r\nx\r\n--b--'), boundary), null)
    }
    const many = multipartOf(bytes(`${'--b\r\n\r\nx\r\n'.repeat(5000)}--b--`), 'b')
    assert.equal(many?.parts.length, MAX_PARTS)
    assert.match(many?.remark ?? '', /first 200 parts/)
    const full = multipartOf(bytes(`${'--b\r\n\r\nx\r\n'.repeat(MAX_PARTS)}--b--`), 'b')
    assert.deepEqual([full?.parts.length, full?.remark], [MAX_PARTS, null])
  })

  test('any bytes give parts within the body, or none', () => {
    const good = bytes(
      '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b\r\n\r\n2\r\n--b--',
    )
    fc.assert(
      fc.property(fc.oneof(mutatedBytes(good), fc.uint8Array({ maxLength: 200 })), (body) => {
        const parts = multipartOf(Uint8Array.from(body), 'b')?.parts ?? []
        const sum = parts.reduce((total, part) => total + part.bytes.length, 0)
        assert.ok(sum <= body.length)
      }),
      { numRuns: 1000 },
    )
  })

  test('any Content-Type gives a type and parameters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        assert.equal(typeof mediaOf(value).type, 'string')
      }),
    )
    const { type, parameters } = mediaOf('Text/HTML; Charset="a\\"b" ; charset=second;x')
    assert.deepEqual([type, [...parameters]], ['text/html', [['charset', 'a"b']]])
  })

  test('pictures are known by their bytes, and a drawing or a text is none', () => {
    const png = Buffer.from('89504e470d0a1a0a0000', 'hex')
    assert.equal(pictureType(png), 'image/png')
    for (const no of ['<svg xmlns="http://www.w3.org/2000/svg">', 'BMW is a car', '', 'GIF8']) {
      assert.equal(pictureType(bytes(no)), null, no)
    }
  })
})
