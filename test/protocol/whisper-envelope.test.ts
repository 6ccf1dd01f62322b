import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { hexBytes, utf8, utf8Text } from '../../src/lib/bytes.ts'
import { newId, tokenOf } from '../../src/lib/ids.ts'
import { formatWhisperCode, parseWhisperCode } from '../../src/protocol/whisper-code.ts'
import {
  envelopeLength,
  needsPassword,
  openWhisper,
  paddedLength,
  safeName,
  sealWhisper,
  UnreadableWhisper,
} from '../../src/protocol/whisper-envelope.ts'
import { mutated } from '../support/arbitraries.ts'
import { typo } from '../support/tokens.ts'
import vectors from '../vectors/whisper-envelope.json' with { type: 'json' }

type Own = {
  name: string
  key: string
  iv: string
  salt?: string
  password?: string
  content: {
    name: string | null
    mediaType: string | null
    data?: string
    fill?: number
    length?: number
  }
  bytes: number
  envelope?: string
  envelopeSha256?: string
}
type Unreadable = { name: string; note: string; envelope: string; key: string; password?: string }

const own: Own[] = vectors.own
const unreadable: Unreadable[] = vectors.unreadable

suite('the vectors', () => {
  for (const vector of own) {
    test(`the vector ${vector.name} is sealed byte for byte, and opened`, async () => {
      const { envelope, key, hasPassword } = await sealWhisper(askOf(vector))
      assert.equal(envelope.length, vector.bytes)
      if (vector.envelope) assert.equal(Buffer.from(envelope).toString('hex'), vector.envelope)
      if (vector.envelopeSha256) {
        assert.equal(createHash('sha256').update(envelope).digest('hex'), vector.envelopeSha256)
      }
      assert.deepEqual(key, bytes(vector.key))
      assert.equal(hasPassword, vector.password !== undefined)
      assert.equal(needsPassword(envelope), hasPassword)
      assert.deepEqual(await openWhisper(envelope, key, vector.password), {
        data: dataOf(vector),
        name: vector.content.name,
        mediaType: vector.content.mediaType,
      })
    })
  }

  for (const { name, envelope, key, password } of unreadable) {
    test(`the vector ${name} is not opened`, async () => {
      await assert.rejects(openWhisper(bytes(envelope), bytes(key), password), isUnreadable)
    })
  }
})

suite('sealing', () => {
  test('sealing takes a fresh key, IV and salt each time', async () => {
    const ask = { data: utf8('once'), password: 'twice' }
    const [first, second] = [await sealWhisper(ask), await sealWhisper(ask)]
    assert.notDeepEqual(first.key, second.key)
    assert.notDeepEqual(first.envelope.slice(1, 17), second.envelope.slice(1, 17))
    assert.notDeepEqual(first.envelope.slice(17, 29), second.envelope.slice(17, 29))
  })

  test('sealing leaves the data and the key of its caller alone', async () => {
    const data = utf8('mine')
    const given = new Uint8Array(32).fill(7)
    const { key } = await sealWhisper({ data, key: given })
    key.fill(0)
    assert.deepEqual([data, given], [utf8('mine'), new Uint8Array(32).fill(7)])
  })

  test('sealing takes a view of a larger buffer for what it shows', async () => {
    const buffer = utf8('xxinsidexx')
    const { envelope, key } = await sealWhisper({ data: buffer.subarray(2, 8) })
    const framed = new Uint8Array(envelope.length + 20)
    framed.set(envelope, 7)
    const { data } = await openWhisper(framed.subarray(7, 7 + envelope.length), key)
    assert.equal(utf8Text(data), 'inside')
  })

  const names: [from: string, to: string | null][] = [
    ['door.txt', 'door.txt'],
    ['a/b\\c', 'a_b_c'],
    ['a\u0000\u202eb', 'a__b'],
    ['ü'.repeat(128), 'ü'.repeat(127)],
    ['a'.repeat(255), 'a'.repeat(255)],
    ['.', null],
    ['..', null],
    ['', null],
  ]
  for (const [from, to] of names) {
    test(`the file name ${JSON.stringify(from)} becomes ${to === null ? 'no name' : 'a name that sealing takes'}`, async () => {
      assert.equal(safeName(from), to)
      if (to !== null) await sealWhisper({ data: utf8('x'), name: to })
    })
  }

  const refused: [what: string, ask: object][] = [
    ['a name with a path', { name: 'a/b' }],
    ['a name with a back slash', { name: 'a\\b' }],
    ['a name of dots', { name: '..' }],
    ['a name of one dot', { name: '.' }],
    ['a name with a control character', { name: 'a\u0000' }],
    ['a name that turns the reading direction', { name: 'a\u202eb' }],
    ['a name with a lone surrogate', { name: 'a\ud800' }],
    ['a name above 255 bytes', { name: 'ü'.repeat(128) }],
    ['a media type without a subtype', { mediaType: 'text' }],
    ['a media type above 255 bytes', { mediaType: `a/${'b'.repeat(254)}` }],
    ['a media type with a line break', { mediaType: 'text/plain;\n' }],
    ['an empty password', { password: '' }],
    ['a password with a lone surrogate', { password: 'a\udfff' }],
    ['a key of 31 bytes', { key: new Uint8Array(31) }],
    ['an IV of 16 bytes', { iv: new Uint8Array(16) }],
    ['a salt of 8 bytes', { salt: new Uint8Array(8), password: 'x' }],
  ]
  for (const [what, ask] of refused) {
    test(`sealing refuses ${what}, and names it`, async () => {
      const message = new RegExp(`^"${Object.keys(ask)[0]}" must be`)
      const named = { name: 'RangeError', message }
      await assert.rejects(sealWhisper({ data: utf8('x'), ...ask }), named)
    })
  }
})

suite('padding', () => {
  test('padding makes every text of up to 250 bytes the same length', async () => {
    const lengths = await Promise.all(
      [0, 1, 8, 12, 100, 250].map(
        async (length) => (await sealWhisper({ data: new Uint8Array(length) })).envelope.length,
      ),
    )
    assert.deepEqual(new Set(lengths), new Set([285]))
  })

  test('padding adds at most an eighth, and leaves few lengths to tell apart', () => {
    const lengths = new Set<number>()
    for (let bytes = 257; bytes <= 1024 * 1024; bytes++) {
      const padded = paddedLength(bytes)
      assert.ok(padded >= bytes && padded <= bytes * 1.125)
      lengths.add(padded)
    }
    // Of the 20 bits of a million lengths, about 8 show.
    assert.ok(lengths.size < 260)
  })

  test('the padded size is told beforehand and to the byte, with a name, a type and a password or without', async () => {
    const told = [{}, { name: 'ä.txt' }, { name: 'ä.txt', mediaType: 'text/plain' }]
    for (const dataBytes of [0, 1, 5_000, ...Array.from({ length: 28 }, (_, i) => 228 + i)]) {
      const ask = { data: new Uint8Array(dataBytes), ...(dataBytes === 0 ? { password: 'p' } : {}) }
      for (const described of told) {
        const { envelope, hasPassword } = await sealWhisper({ ...ask, ...described })
        assert.equal(envelopeLength({ dataBytes, ...described, hasPassword }), envelope.length)
      }
    }
  })

  test('a padded size never shrinks with the content, and is padded no further', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 31), fc.nat(2 ** 31), (a, b) => {
        assert.ok(a > b || paddedLength(a) <= paddedLength(b))
        assert.equal(paddedLength(paddedLength(a)), paddedLength(a))
      }),
    )
  })
})

suite('opening', () => {
  test('opening gives back any content', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 5000 }),
        fc.stringMatching(/^[a-zA-Zäß🐝 ().-]{0,60}$/u).filter((name) => !/^\.\.?$/.test(name)),
        fc.constantFrom('', 'text/plain', 'image/svg+xml', 'text/html; charset="utf-8"'),
        async (data, name, mediaType) => {
          const { envelope, key } = await sealWhisper({ data, name, mediaType })
          assert.deepEqual(await openWhisper(envelope, key), {
            data: new Uint8Array(data),
            name: name || null,
            mediaType: mediaType || null,
          })
        },
      ),
    )
  })

  test('opening throws its one error for any bytes that nobody sealed', async () => {
    const key = new Uint8Array(32)
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 400 }),
        fc.constantFrom(1, 2, 0, 255),
        async (noise, version) => {
          const envelope = Uint8Array.of(version, ...noise)
          await assert.rejects(openWhisper(envelope, key), isUnreadable)
        },
      ),
      { numRuns: 500 },
    )
  })

  test('opening throws its one error wherever one bit is changed', async () => {
    const { envelope, key } = await sealWhisper({ data: utf8('whole or not at all') })
    for (let at = 0; at < envelope.length; at++) {
      const changed = envelope.slice()
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8))
      await assert.rejects(openWhisper(changed, key), isUnreadable)
    }
  })

  test('opening gives back no data at all behind a name that fills the padding', async () => {
    const name = 'a'.repeat(250)
    const { envelope, key } = await sealWhisper({ data: new Uint8Array(), name })
    const opened = { data: new Uint8Array(), name, mediaType: null }
    assert.deepEqual(await openWhisper(envelope, key), opened)
  })

  test('opening throws its one error for a key of another length', async () => {
    const { envelope } = await sealWhisper({ data: utf8('x') })
    for (const length of [0, 16, 31, 33]) {
      await assert.rejects(openWhisper(envelope, new Uint8Array(length)), isUnreadable)
    }
  })

  test('opening throws its one error for what a holder of the key made in another form', async () => {
    const key = new Uint8Array(32).fill(3)
    const empty = [0, 0, 0, 0, 0, 0]
    assert.equal((await openWhisper(await madeBy(key, 1, empty), key)).data.length, 0)
    // Versions that there are not, a password's version without one, and a media type that is no UTF-8.
    for (const version of [0, 2, 3]) {
      await assert.rejects(openWhisper(await madeBy(key, version, empty), key), isUnreadable)
    }
    const noText = await madeBy(key, 1, [0, 1, 0xff, 0, 0, 0, 0])
    await assert.rejects(openWhisper(noText, key), isUnreadable)
  })

  test('opening tells the wrong key from damage neither by its text nor by a cause', async () => {
    const { envelope } = await sealWhisper({ data: utf8('x') })
    const error = await openWhisper(envelope, new Uint8Array(32)).catch((thrown: unknown) => thrown)
    assert.ok(error instanceof UnreadableWhisper)
    assert.equal(error.cause, undefined)
    assert.equal(error.message, new UnreadableWhisper().message)
    assert.equal(error.name, 'UnreadableWhisper')
    assert.match(error.message, /does not open: a wrong key or password, or damaged bytes/)
  })
})

suite('the share code', () => {
  const publicId = `whisper_${'0'.repeat(22)}`
  const readToken = tokenOf('whisper_read', new Uint8Array(32).fill(9))
  const key = Uint8Array.from({ length: 32 }, (_, i) => i)
  const KEY = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8'
  const plain = `mayfly-whisper:1:${publicId}:${readToken}:${KEY}`

  test('the share code has id, token and key, and says whether there is a password', () => {
    const parts = { publicId, readToken, key, hasPassword: false }
    assert.equal(formatWhisperCode(parts), plain)
    assert.equal(formatWhisperCode({ ...parts, hasPassword: true }), `${plain}:p`)
    assert.deepEqual(parseWhisperCode(plain), parts)
    assert.deepEqual(parseWhisperCode(`${plain}:p`), { ...parts, hasPassword: true })
  })

  const wrong: [what: string, text: string][] = [
    ['an empty text', ''],
    ['the prefix alone', 'mayfly-whisper:1:'],
    ['another version', plain.replace(':1:', ':2:')],
    ['another case', plain.replace('mayfly', 'Mayfly')],
    ['a missing part', `mayfly-whisper:1:${publicId}:${readToken}`],
    ['an empty flag', `${plain}:`],
    ['an unknown flag', `${plain}:q`],
    ['more after the flag', `${plain}:p:`],
    ['a space around it', ` ${plain}`],
    ['a line break after it', `${plain}\n`],
    ['a typo in the token', plain.replace(readToken, `${readToken.slice(0, -1)}~`)],
    ['a wrong checksum', plain.replace(readToken, typo(readToken))],
    [
      'a token of another kind',
      plain.replace(readToken, tokenOf('pulse_ping', new Uint8Array(32))),
    ],
    ['an id of another kind', plain.replace(publicId, newId('catch'))],
    ['a key of 31 bytes', plain.slice(0, -2)],
    ['a padded key', `${plain}=`],
    ['a key in the other alphabet', plain.replace(KEY, `+${KEY.slice(1)}`)],
    ['a key with bits that do not count', `${plain.slice(0, -1)}9`],
  ]
  for (const [what, text] of wrong) {
    test(`${what} is not a share code`, () => {
      assert.equal(parseWhisperCode(text), null)
    })
  }

  test('the share code is made of right parts only', () => {
    const parts = { publicId, readToken, key, hasPassword: false }
    const broken = [{ publicId: 'x' }, { readToken: 'x' }, { key: new Uint8Array(31) }]
    for (const part of broken) {
      const refused = { name: 'RangeError', message: 'not the parts of a share code' }
      assert.throws(() => formatWhisperCode({ ...parts, ...part }), refused)
    }
  })

  test('the share code is read from any text without a throw, and written back as it was', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constant(plain), mutated(plain)), (text) => {
        const parts = parseWhisperCode(text)
        if (parts) assert.equal(formatWhisperCode(parts), text)
      }),
      { numRuns: 2000 },
    )
  })
})

/** An envelope around these bytes, filled up to 256, under the plain key and the name of any version. */
async function madeBy(
  key: Uint8Array<ArrayBuffer>,
  version: number,
  plaintext: number[],
): Promise<Uint8Array> {
  const before = new Uint8Array(version === 2 ? 17 : 1)
  before[0] = version
  const iv = new Uint8Array(12)
  const aes = await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt'])
  const padded = new Uint8Array(256)
  padded.set(plaintext)
  const additionalData = utf8(`mayfly/whisper/${version}`)
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData }, aes, padded)
  return Uint8Array.of(...before, ...iv, ...new Uint8Array(sealed))
}

function askOf({ key, iv, salt, password, content }: Own, data = dataOf({ content })) {
  return {
    data,
    key: bytes(key),
    iv: bytes(iv),
    ...(salt === undefined ? {} : { salt: bytes(salt) }),
    ...(password === undefined ? {} : { password }),
    ...(content.name === null ? {} : { name: content.name }),
    ...(content.mediaType === null ? {} : { mediaType: content.mediaType }),
  }
}

function dataOf({ content }: Pick<Own, 'content'>): Uint8Array<ArrayBuffer> {
  return content.data === undefined
    ? new Uint8Array(content.length ?? 0).fill(content.fill ?? 0)
    : bytes(content.data)
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  const read = hexBytes(text)
  assert.ok(read)
  return read
}

function isUnreadable(error: unknown): boolean {
  return error instanceof UnreadableWhisper
}
