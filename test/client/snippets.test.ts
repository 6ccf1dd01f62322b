import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import {
  type CatchEvent,
  eventBody,
  toCurl,
  toFetch,
  toHttpie,
  toPython,
} from '../../src/client/index.ts'
import { startEcho, withoutOwn } from '../support/echo.ts'

suite('events as code', () => {
  test('curl sends the bytes of headers that are beyond ASCII, as they came', async (t) => {
    const echo = await startEcho(t)
    const event = anEvent({
      path: "/100%/it's",
      headers: [
        { name: 'x-latin', value: 'caf\xe9 100% \\n \'quoted\' "twice" $HOME `id` \x80\xff' },
        { name: 'x-utf8', value: 'Zo\xc3\xab' },
        { name: 'x-plain', value: '$(id) %s \\' },
      ],
    })
    const command = `${toCurl(event, { url: `${echo.url}/h` })} --silent --show-error`
    // biome-ignore lint/suspicious/noControlCharactersInRegex: What a terminal sends as it is.
    assert.match(command, /^[\x00-\x7f]*$/, 'it survives a clipboard')
    await promisify(execFile)('sh', ['-euc', command])
    const [seen] = echo.seen
    assert.equal(seen?.url, `/h${event.path}`)
    assert.deepEqual(withoutOwn(seen?.headers ?? []), event.headers)
  })

  test('a text that would look different in a command from what it is goes through base64', async (t) => {
    const echo = await startEcho(t)
    const body = 'invoice\u202efdp.exe \u200b'
    for (const command of [
      toCurl(anEvent({ body }), { url: echo.url }),
      toHttpie(anEvent({ body }), { url: echo.url }),
    ]) {
      assert.match(command, /^printf %s '[\w+/=]+' \| base64 -d \| /)
      assert.doesNotMatch(command, /[\u200b\u202e]/)
    }
    await promisify(execFile)('sh', ['-euc', toCurl(anEvent({ body }), { url: echo.url })])
    assert.equal(String(echo.seen.pop()?.body), body)
  })

  test('fetch sends an event again, as far as it can, and says what it cannot', async (t) => {
    const echo = await startEcho(t)
    const headers = [
      { name: 'x-latin', value: 'caf\xe9 "\\' },
      { name: 'x-twice', value: '1' },
      { name: 'content-type', value: 'text/plain' },
    ]
    for (const body of ['a "quoted" \\ line\nwith é and 🎉', Buffer.from([0, 255, 10])]) {
      const event = anEvent({ method: 'PATCH', path: '/x', query: 'a=%20b', headers, body })
      await run(toFetch(event, { url: echo.url }))
      const seen = echo.seen.pop()
      assert.deepEqual([seen?.method, seen?.url], ['PATCH', '/x?a=%20b'])
      assert.deepEqual(seen?.body, Buffer.from(eventBody(event)))
      for (const header of headers) {
        assert.deepEqual(
          seen?.headers.find(({ name }) => name === header.name),
          header,
        )
      }
    }
    const get = toFetch(anEvent({ method: 'GET', body: 'x' }), { url: echo.url })
    assert.match(get, /^\/\/ fetch sends no body with GET, so it is left out\.$/m)
    await run(get)
    assert.equal(echo.seen.pop()?.body.length, 0)
    assert.match(toFetch(anEvent({ path: '/a/../b' }), { url: echo.url }), /^\/\/ fetch resolves/)
    assert.match(toFetch(anEvent({ method: 'TRACE' }), { url: echo.url }), /^\/\/ fetch refuses/)
  })

  test('no event can get out of the quotes of JavaScript and Python', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (value, body) => {
        const event = anEvent({ path: `/${value}`, headers: [{ name: 'x', value }], body })
        for (const code of [
          toFetch(event, { url: 'http://h' }),
          toPython(event, { url: 'http://h' }),
        ]) {
          assert.match(code, /^[\n\x20-\x7e]*$/)
          // Without its texts, nothing but the code itself is left.
          const bare = code.replaceAll(/"(?:[^"\\]|\\.)*"/g, 'text')
          assert.doesNotMatch(bare, /["\\]/)
          assert.ok(bare.split('\n').length < 20)
        }
      }),
    )
  })

  test('HTTPie never takes a value for a file or another item, and names what it cannot send', () => {
    const event = anEvent({
      headers: [
        { name: 'x-file', value: '@/etc/passwd' },
        { name: 'x-json', value: '=1' },
        { name: 'x-empty', value: '' },
        { name: 'x-escape', value: 'a\\=b' },
        { name: 'x-latin', value: '\xe9' },
      ],
      body: "it's",
    })
    const command = toHttpie(event, { url: 'http://127.0.0.1:3000' })
    assert.deepEqual(command.split(' \\\n  '), [
      "# HTTPie cannot send the value of x-escape, x-latin.\nhttp --path-as-is --ignore-stdin 'POST'",
      "'http://127.0.0.1:3000/'",
      ...["'x-file:\\@/etc/passwd'", "'x-json:\\=1'", "'x-empty;'"],
      ...["'Accept:'", "'Accept-Encoding:'", "'User-Agent:'", "'Content-Type:'"],
      "--raw 'it'\\''s'",
    ])
    const binary = toHttpie(anEvent({ body: Buffer.from([0, 1]) }), {
      url: 'http://127.0.0.1:3000',
    })
    assert.match(binary, /^printf %s 'AAE=' \| base64 -d \| http --path-as-is 'POST'/)
  })

  test('Python names the host, the port and every header in order, and sends the bytes', () => {
    const event = anEvent({
      path: '/p',
      query: 'q=1',
      headers: [
        { name: 'x', value: 'é' },
        { name: 'x', value: '2' },
        { name: 'Content-Length', value: '99' },
      ],
      body: '"ü\n',
    })
    assert.equal(
      toPython(event, { url: 'https://[::1]:8443/base/' }),
      `import http.client

body = b"\\"\\xc3\\xbc\\n"
connection = http.client.HTTPSConnection("::1", 8443)
connection.putrequest("POST", "/base/p?q=1", skip_accept_encoding=True)
connection.putheader("x", "\\u00e9")
connection.putheader("x", "2")
connection.putheader("Content-Length", str(len(body)))
connection.endheaders(body)
print(connection.getresponse().status)`,
    )
    const binary = toPython(anEvent({ body: Buffer.from([255]) }), { url: 'http://h' })
    assert.match(
      binary,
      /^import base64\nimport http\.client\n\nbody = base64\.b64decode\("\/w=="\)$/m,
    )
  })
})

type Made = Partial<Pick<CatchEvent, 'method' | 'path' | 'query' | 'headers'>> & {
  body?: string | Buffer
}

function anEvent({ body = '', ...rest }: Made): CatchEvent {
  const isText = typeof body === 'string'
  return {
    ...{ id: randomUUID(), sequence: 1, receivedAt: '2026-11-22T12:00:00.000Z', access: 'public' },
    ...{ method: 'POST', path: '/', query: '', headers: [], contentType: null },
    body: isText ? body : body.toString('base64'),
    bodyEncoding: isText ? 'utf8' : 'base64',
    bodyBytes: Buffer.byteLength(body),
    ...{ bodySha256: '', sourceIp: '127.0.0.1', ipLocation: null },
    ...rest,
  }
}

async function run(code: string): Promise<void> {
  const AsyncFunction = (async () => undefined).constructor as FunctionConstructor
  await new AsyncFunction(code)()
}
