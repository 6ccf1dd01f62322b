import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { createEventParser, readEvents, type StreamEvent } from '../../src/client/event-stream.ts'
import { MayflyError } from '../../src/client/index.ts'

type Read = { events: StreamEvent[]; lastEventId: string }

const message = (data: string): StreamEvent => ({ event: 'message', data })

suite('an event stream (WHATWG HTML §9.2)', () => {
  const table: [note: string, text: string, expected: Partial<Read>][] = [
    ['one line of data', 'data: a\n\n', { events: [message('a')] }],
    ['several lines of data', 'data: a\ndata:\ndata: b\n\n', { events: [message('a\n\nb')] }],
    ['line ends of CR', 'data: a\rdata: b\r\r', { events: [message('a\nb')] }],
    ['line ends of CRLF', 'data: a\r\ndata: b\r\n\r\n', { events: [message('a\nb')] }],
    ['line ends of all kinds', 'data: a\rdata: b\ndata: c\r\n\n', { events: [message('a\nb\nc')] }],
    ['CR and LF that are two ends', 'data: a\n\r', { events: [message('a')] }],
    ['a name for the event', 'event: end\ndata: a\n\n', { events: [{ event: 'end', data: 'a' }] }],
    [
      'a name for one event only',
      'event: end\ndata: a\n\ndata: b\n\n',
      { events: [{ event: 'end', data: 'a' }, message('b')] },
    ],
    [
      'a name given twice',
      'event: a\nevent: b\ndata: 1\n\n',
      { events: [{ event: 'b', data: '1' }] },
    ],
    ['an empty name', 'event:\ndata: a\n\n', { events: [message('a')] }],
    ['a name without data', 'event: end\n\ndata: a\n\n', { events: [message('a')] }],
    ['comments', ':\n: x\n:data: no\ndata: a\n:\n\n', { events: [message('a')] }],
    ['nothing but comments', ':\n\n:\n\n', { events: [] }],
    ['one space after the colon, and no other', 'data:  a \n\n', { events: [message(' a ')] }],
    ['no space after the colon', 'data:a\n\n', { events: [message('a')] }],
    ['a tab after the colon', 'data:\ta\n\n', { events: [message('\ta')] }],
    ['colons in the value', 'data: a:b: c\n\n', { events: [message('a:b: c')] }],
    ['a field without a colon', 'data\n\n', { events: [message('')] }],
    ['two of those', 'data\ndata\n\n', { events: [message('\n')] }],
    ['fields that are unknown', 'datum: a\nDATA: b\n data: c\n\n', { events: [] }],
    ['an event that is cut off', 'data: a\n\ndata: b\n', { events: [message('a')] }],
    ['a line that is cut off', 'data: a\n\ndata: b', { events: [message('a')] }],
    ['a byte order mark', '\ufeffdata: a\n\n', { events: [message('a')] }],
    ['a second byte order mark', '\ufeff\ufeffdata: a\n\n', { events: [] }],
    ['characters of every length', 'data: aé€😀\n\n', { events: [message('aé€😀')] }],
    [
      'separators that are no line ends',
      'data: a\u2028b\u2029c\u0085d\u000be\n\n',
      { events: [message('a\u2028b\u2029c\u0085d\u000be')] },
    ],
    ['an id', 'id: 7\ndata: a\n\n', { events: [message('a')], lastEventId: '7' }],
    ['an id without data', 'id: 7\n\n', { events: [], lastEventId: '7' }],
    ['an id that is not complete', 'id: 7\ndata: a\n', { events: [], lastEventId: '' }],
    [
      'an id that stays for the events after it',
      'id: 7\ndata: a\n\ndata: b\n\n',
      { lastEventId: '7' },
    ],
    ['an id that is taken back', 'id: 7\n\nid\n\n', { lastEventId: '' }],
    ['an id with a NULL', 'id: 7\n\nid: 8\0\n\n', { lastEventId: '7' }],
    ['a time to reconnect, which it ignores', 'retry: 0\ndata: a\n\n', { events: [message('a')] }],
  ]
  for (const [note, text, expected] of table)
    test(`the parser reads ${note}, however it is cut`, () => {
      const bytes = Buffer.from(text)
      const whole = read([bytes])
      assert.deepEqual({ ...whole, ...expected }, whole)
      assert.deepEqual(read([...bytes].map((byte) => Buffer.from([byte]))), whole, 'byte by byte')
      for (let at = 0; at <= bytes.length; at++) {
        const parts = [bytes.subarray(0, at), Buffer.alloc(0), bytes.subarray(at)]
        assert.deepEqual(read(parts), whole, `cut at ${at}`)
      }
    })

  test('the parser reads bytes that are no UTF-8 as replacement characters', () => {
    const bytes = Buffer.from([...Buffer.from('data: '), 0xff, 0xe2, 0x82, 0x0a, 0x0a])
    assert.deepEqual(read([bytes]).events, [message('\ufffd\ufffd')])
  })

  test('the parser tells an event as soon as its blank line is there, before an LF that may follow', () => {
    const parser = createEventParser()
    assert.deepEqual(parser.push(Buffer.from('data: a\r\n\r')), [message('a')])
    assert.deepEqual(parser.push(Buffer.from('\ndata: b\n')), [])
    assert.deepEqual(parser.push(Buffer.from('\n')), [message('b')])
  })

  test('the parser makes of any bytes events or our error, and nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 6 }), (parts) => {
        const parser = createEventParser({ maxCharacters: 40 })
        try {
          for (const part of parts) {
            for (const { event, data } of parser.push(part)) {
              assert.equal(typeof event, 'string')
              assert.ok(data.length <= 40)
            }
          }
        } catch (error) {
          assert.ok(error instanceof MayflyError, String(error))
          assert.equal(error.phrase, 'unexpected answer')
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

suite('an event stream without an end', () => {
  const long: [note: string, piece: string][] = [
    ['a line', 'xxxxxxxxxx'],
    ['a line of data', 'data: xxx'],
    ['an event', 'data: xxxxx\n'],
    ['an event of empty lines', 'data\n'],
    ['a comment', ':xxxxxxxxx'],
  ]
  for (const [note, piece] of long) {
    test(`an event stream of ${note} without an end is given up, not stored`, () => {
      const parser = createEventParser({ maxCharacters: 1_000 })
      const push = (): unknown => parser.push(Buffer.from(piece))
      let pushed = 0
      assert.throws(
        () => {
          for (; pushed < 10_000; pushed++) push()
        },
        (error) => error instanceof MayflyError && error.phrase === 'unexpected answer',
      )
      assert.ok(pushed < 1_010)
    })
  }

  test('an event stream of small events is read for ever', () => {
    const parser = createEventParser({ maxCharacters: 1_000 })
    for (let i = 0; i < 10_000; i++) {
      assert.deepEqual(parser.push(Buffer.from(`:\n\ndata: ${i}\n\n`)), [message(String(i))])
    }
  })
})

suite('a body of events', () => {
  test('a body of events is read to its end, and let go of by a reader that has enough', async () => {
    const ended = bodyOf(['data: 1\n\n', 'data: 2\n\ndata: 3\n\nda', 'ta: 4\n'])
    assert.deepEqual(
      (await Array.fromAsync(readEvents(ended.body, createEventParser()))).map(({ data }) => data),
      ['1', '2', '3'],
    )
    const left = bodyOf(['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n'])
    for await (const { data } of readEvents(left.body, createEventParser())) {
      if (data === '1') break
    }
    assert.equal(left.isCancelled(), true)
  })

  test('a body of events that is lost rejects after what came before', async () => {
    const told: string[] = []
    const lost = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from('data: 1\n\n'))
      },
      pull(controller) {
        controller.error(new TypeError('terminated'))
      },
    })
    await assert.rejects(async () => {
      for await (const { data } of readEvents(lost, createEventParser())) told.push(data)
    }, /terminated/)
    assert.deepEqual(told, ['1'])
  })

  test('a body of events that falls silent is lost; a comment now and then is not silence', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let say = (_text: string): void => {}
    let isCancelled = false
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        say = (text) => controller.enqueue(Buffer.from(text))
      },
      cancel() {
        isCancelled = true
      },
    })
    const events = readEvents(body, createEventParser())
    const next = events.next()
    for (let i = 0; i < 10; i++) {
      await turn()
      t.mock.timers.tick(44_000)
      say(':\n\n')
    }
    say('data: 1\n\n')
    assert.deepEqual(await next, { done: false, value: message('1') })
    const silent = assert.rejects(events.next(), /silent/)
    await turn()
    t.mock.timers.tick(45_000)
    await silent
    assert.equal(isCancelled, true)
  })
})

function read(parts: Uint8Array[]): Read {
  const parser = createEventParser()
  const events = parts.flatMap((part) => parser.push(part))
  return { events, lastEventId: parser.lastEventId() }
}

function bodyOf(texts: string[]): {
  body: ReadableStream<Uint8Array>
  isCancelled(): boolean
} {
  let isCancelled = false
  const waiting = [...texts]
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const text = waiting.shift()
      if (text === undefined) controller.close()
      else controller.enqueue(Buffer.from(text))
    },
    cancel() {
      isCancelled = true
    },
  })
  return { body, isCancelled: () => isCancelled }
}

/** Lets everything run that is ready to. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
