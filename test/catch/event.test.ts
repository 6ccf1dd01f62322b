import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { eventsJson } from '../../src/catch/event.ts'
import { found } from '../../src/catch/found.ts'
import { packHeaders } from '../../src/catch/kept.ts'

/** Every character that a header may have in the store: one byte each, but no line feed. */
const ALL_BYTES = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code))
  .filter((letter) => letter !== '\n')
  .join('')

test('every byte that a header can have is in the JSON of an event as JSON.stringify has it', () => {
  for (const value of [ALL_BYTES, ...ALL_BYTES, '', 'a: b:c']) {
    const headers = [...['Host', 'a'], ...['X-Odd', value], ...['X-Odd', '']]
    const shown = JSON.parse(jsonOf({ header_lines: packHeaders(headers) }))
    assert.deepEqual(shown.headers, [
      { name: 'Host', value: 'a' },
      { name: 'X-Odd', value },
      { name: 'X-Odd', value: '' },
    ])
    const json = JSON.stringify(shown.headers)
    assert.ok(jsonOf({ header_lines: packHeaders(headers) }).includes(`"headers":${json},`))
  }
})

test('each event is in JSON on its own, however long that is', () => {
  const header_lines = packHeaders(['a', `"${'\\'.repeat(8000)}"`])
  const body = Buffer.from('"€'.repeat(50_000))
  const rows = [anEvent({ sequence: 5, header_lines, body }), anEvent({ sequence: 4, path: 'x' })]
  const [first, second] = eventsJson(rows).map((row) => ({
    sequence: row.sequence,
    event: JSON.parse(Buffer.from(row.json ?? []).toString()),
  }))
  assert.equal(first?.sequence, 5)
  assert.equal(first?.event.body, '"€'.repeat(50_000))
  assert.equal(first?.event.headers[0].value.length, 8002)
  assert.deepEqual([second?.sequence, second?.event.path], [4, 'x'])
})

test('a search finds in the path, the query and the content type, in either case, and says of which event', () => {
  const longType = `Text/${'x'.repeat(300)}`
  const rows = [
    anEvent({ sequence: 1, path: '/Hooks/Paid' }),
    anEvent({ sequence: 2, query: 'State=Open' }),
    anEvent({ sequence: 3, header_lines: packHeaders(['content-type', 'Application/JSON']) }),
    anEvent({ sequence: 4, header_lines: packHeaders(['Content-Type', longType]) }),
  ]
  const searched = (wanted: string) => found(rows, wanted)
  assert.deepEqual(searched('hooks/PAID'), [{ sequence: 1, has_text: 1 }])
  assert.deepEqual(searched('STATE=open'), [{ sequence: 2, has_text: 1 }])
  assert.deepEqual(searched('application/json'), [{ sequence: 3, has_text: 1 }])
  assert.deepEqual(searched(longType), [{ sequence: 4, has_text: 1 }])
  assert.deepEqual(searched('nothing'), [])
})

test('a search finds in a body exactly what both have in lower case', () => {
  const letters = [...'aZäÖßkKiI\u212a\u0130\u0307€Σςσ😀 ']
  const texts = letters.flatMap((a) => letters.map((b) => `${a}${b}`))
  const long = 'x'.repeat(64 * 1024 - 1)
  for (const body of [...texts, ...letters.map((text) => `${long}${text}k${long}`)]) {
    for (const wanted of ['k', 'i', 'az', 'ZA', 'ä', 'ö', 'k\u212a', 'i\u0307', 'σ', '😀', 'xk']) {
      assert.equal(
        found([anEvent({ body: Buffer.from(body) })], wanted).length === 1,
        body.toLowerCase().includes(wanted.toLowerCase()),
        `${wanted} in ${body.replace(long, '…')}`,
      )
    }
  }
})

test('a search finds in a header exactly what is in its name, a colon, a space and its value', () => {
  const headers = [
    'X-GitHub-Event',
    'Push',
    'X-Odd',
    'a:b  c',
    'X-Empty',
    '',
    'X-\u00c9',
    '\u00dc"\\',
  ]
  const lines = headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}`] : []))
  const stored = anEvent({ header_lines: packHeaders(headers) })
  const texts = lines.join('\n').toLowerCase()
  const parts = Array.from(texts, (_, at) =>
    [1, 2, 3, 7].map((length) => texts.slice(at, at + length)),
  )
  for (const wanted of [
    ...parts.flat(),
    'x-github-event:push',
    ':',
    ' ',
    '\n',
    '  ',
    'pushx',
    '"name"',
  ]) {
    const isThere = lines.some((line) => line.toLowerCase().includes(wanted.toLowerCase()))
    assert.equal(found([stored], wanted.toUpperCase()).length === 1, isThere, wanted)
  }
})

test('a search finds a text across the pieces in which it looks at a large body', () => {
  const piece = 64 * 1024
  const wanted = 'Needle'
  for (let at = piece - wanted.length; at <= piece; at++) {
    const body = Buffer.from('.'.repeat(at) + wanted.toUpperCase() + '.'.repeat(10))
    assert.equal(found([anEvent({ body })], wanted).length, 1, `at ${at}`)
    assert.equal(found([anEvent({ body })], `${wanted}s`).length, 0)
  }
})

type Change = {
  header_lines?: Uint8Array | null
  body?: Uint8Array | null
  sequence?: number
  path?: string
  query?: string
}

const anEvent = (change: Change) => ({
  sequence: 1,
  salt: 1,
  received_at: 1_760_000_000_000,
  access: 'public',
  method: 'POST',
  path: '',
  query: '',
  header_lines: packHeaders([]),
  body: new Uint8Array(),
  body_bytes: 0,
  body_sha256: '',
  source_ip: '',
  ip_location: null,
  ...change,
})

function jsonOf(event: Change): string {
  const [row] = eventsJson([anEvent(event)])
  return Buffer.from(row?.json ?? []).toString()
}

test('a search finds in a path and a query what people read there, and what was sent', () => {
  const rows = [
    anEvent({ sequence: 1, query: 'a=hello%20world&name=J%C3%BCrgen' }),
    anEvent({ sequence: 2, query: 'a=hello+world&email=a%40b.c' }),
    anEvent({ sequence: 3, path: '/hello%20world/a+b', query: 'half=%C3&%zz&50%' }),
  ]
  const sequences = (wanted: string) => found(rows, wanted).map(({ sequence }) => sequence)
  assert.deepEqual(sequences('hello world'), [1, 2, 3])
  assert.deepEqual(sequences('jürgen'), [1])
  assert.deepEqual(sequences('a@b.c'), [2])
  assert.deepEqual(sequences('hello%20world'), [1, 3])
  assert.deepEqual(sequences('hello+world'), [2])
  // In a path a plus sign is one.
  assert.deepEqual(sequences('a+b'), [3])
  assert.deepEqual(sequences('a b'), [])
  assert.deepEqual(sequences('half=%c3&%zz&50%'), [3])
})

test('a search reads a body that is compressed once, up to 1 MiB of text, and nothing that only says so', () => {
  const text = '{"type":"Invoice.Paid","name":"Jürgen"}'
  const coded = (coding: string, body: Uint8Array) =>
    anEvent({ body, header_lines: packHeaders(['Content-ENCODING', ` ${coding}`]) })
  const finds = (coding: string, body: Uint8Array, wanted = 'invoice.paid') =>
    found([coded(coding, body)], wanted).some(({ has_text }) => has_text)
  assert.ok(finds('gzip', gzipSync(text)))
  assert.ok(finds('X-GZIP', gzipSync(text), 'JÜRGEN'))
  assert.ok(finds('deflate', deflateSync(text)))
  assert.ok(finds('deflate', deflateRawSync(text)))
  assert.ok(finds('br', brotliCompressSync(text)))
  assert.ok(finds('gzip', Buffer.from(text)), 'text that says gzip is still text')
  assert.ok(!finds('identity', gzipSync(text)))
  assert.ok(!finds('gzip, br', brotliCompressSync(gzipSync(text))))
  assert.ok(!finds('constructor', gzipSync(text)))
  assert.ok(!finds('gzip', gzipSync(text).subarray(0, -3)))
  assert.ok(!finds('gzip', gzipSync(Buffer.concat([Buffer.from([0xff]), Buffer.from(text)]))))
  const filled = (bytes: number) => gzipSync(text + ' '.repeat(bytes - Buffer.byteLength(text)))
  assert.ok(finds('gzip', filled(1024 * 1024)))
  assert.ok(!finds('gzip', filled(1024 * 1024 + 1)))
})

test('a search that has inflated 1 MiB stops, and says after which event, whatever became of the bytes', () => {
  const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024))
  const broken = gzipSync(Buffer.alloc(700 * 1024)).subarray(0, -1)
  const whole = gzipSync(' '.repeat(600 * 1024))
  for (const [body, looked] of [
    [bomb, 1],
    [broken, 2],
    [whole, 2],
  ] as const) {
    const header_lines = packHeaders(['content-encoding', 'gzip'])
    const rows = [5, 4, 3].map((sequence) => anEvent({ sequence, body, header_lines }))
    assert.deepEqual(found(rows, 'nothing'), [{ sequence: 6 - looked, has_text: 0 }])
  }
})
