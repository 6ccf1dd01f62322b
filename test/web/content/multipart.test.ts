import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { mediaOf, pictureType } from '../../../src/web/content/media.ts'
import { partsOf } from '../../../src/web/content/multipart.ts'

const bytes = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text, 'utf8'))
suite('multipart bodies', () => {
  test('a form of the platform is taken apart to the byte, with its names and files', async () => {
    const form = new FormData()
    form.append('title', 'Zoë "the" first\r\n--x')
    form.append('empty', '')
    const file = new Uint8Array([0, 13, 10, 45, 45, 255, 10, 13])
    form.append('upload', new File([file], 'ünïcode.png', { type: 'image/png' }))
    const request = new Response(form)
    const body = new Uint8Array(await request.arrayBuffer())
    const field = { filename: null, contentType: 'text/plain' }
    assert.deepEqual(await partsOf(body, request.headers.get('content-type')), [
      { ...field, name: 'title', bytes: bytes('Zoë "the" first\r\n--x') },
      { ...field, name: 'empty', bytes: bytes('') },
      { name: 'upload', filename: 'ünïcode.png', contentType: 'image/png', bytes: file },
    ])
  })

  test('a body that is cut, or has no such boundary, or is of another type, has no parts', async () => {
    const whole = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nhello\r\n--b--\r\n'
    const partsIn = (body: string, type: string | null) => partsOf(bytes(body), type)
    assert.equal((await partsIn(whole, 'multipart/form-data; boundary=b'))?.length, 1)
    assert.equal(await partsIn(whole.slice(0, 60), 'multipart/form-data; boundary=b'), null)
    for (const type of [
      'multipart/form-data; boundary=other',
      'multipart/form-data',
      'x/y',
      null,
    ]) {
      assert.equal(await partsIn(whole, type), null, String(type))
    }
  })

  test('any Content-Type gives a type and a charset', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        assert.equal(typeof mediaOf(value).type, 'string')
      }),
    )
    const media = mediaOf('Text/HTML; q=1; Charset="utf-8" ; charset=second;x')
    assert.deepEqual(media, { type: 'text/html', charset: 'utf-8' })
  })

  test('pictures are known by their bytes, and a drawing or a text is none', () => {
    const png = Buffer.from('89504e470d0a1a0a0000', 'hex')
    assert.equal(pictureType(png), 'image/png')
    for (const no of ['<svg xmlns="http://www.w3.org/2000/svg">', 'BMW is a car', '', 'GIF8']) {
      assert.equal(pictureType(bytes(no)), null, no)
    }
  })
})
