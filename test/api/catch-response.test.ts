import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { suite, test } from 'node:test'
import type { CatchCapability, CatchResponse } from '../../src/client/index.ts'
import { answerOf } from '../support/answer.ts'
import { anInbox, eventsOf, UNAVAILABLE } from '../support/catch.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { exchange } from '../support/socket.ts'
import { openDatabase } from '../support/store.ts'
import { vectors } from '../support/vectors.ts'

/** A sender's published challenge, the answer that its documentation asks for, and what an owner chooses for it. */
type Challenge = {
  note: string
  response: CatchResponse
  request: { method: string; query: string; headers: Record<string, string>; body: string }
  answer: { contentType: string; body: string }
}

const CHALLENGES = readdirSync(new URL('../vectors/challenges/', import.meta.url)).map((file) => {
  const name = file.replace('.json', '')
  return [name, vectors<Challenge>(`challenges/${name}`)] as const
})

const NOTHING = { status: 204, type: null, body: '' }
const OK = { status: 200, contentType: 'application/json', body: '{"ok":true}' } as const

suite('the answer that an owner has chosen', () => {
  const theServer = shareServer()

  for (const [sender, { note, response, request, answer }] of CHALLENGES) {
    test(`sets up the webhook of ${sender}: ${note}`, async () => {
      const { ask, owner, events } = await anAnswering(await theServer(), response)
      const { method, query, headers, body } = request
      const sent = await ask(`?${query}`, { method, headers, ...(body === '' ? {} : { body }) })
      assert.deepEqual(sent, {
        status: 200,
        type: `${answer.contentType}; charset=utf-8`,
        body: answer.body,
      })
      const [event] = await events()
      assert.deepEqual([event?.method, event?.query, event?.body], [method, query, body])
      // What comes after the challenge is an ordinary event.
      assert.deepEqual(await ask('', { method: 'POST', body: '{"type":"event"}' }), NOTHING)
      assert.doesNotMatch(JSON.stringify(await owner.response()), /secret/)
    })
  }

  test('a chosen answer answers POST, PUT, PATCH and DELETE, and nothing that a browser or a shell would fetch', async () => {
    const { ask } = await anAnswering(await theServer(), { ...OK, retryAfterSeconds: 0 })
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status, body } = await ask('', { method })
      assert.deepEqual([status, body], [200, OK.body], method)
    }
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      assert.deepEqual(await ask('', { method }), NOTHING, method)
    }
  })

  test('a page of a browser never shows it', async () => {
    const server = await theServer()
    const { inbox } = await anAnswering(server, OK)
    const { inbox: echo } = await anAnswering(server, { echo: { query: 'c' } })
    const asked = async (some: CatchCapability, mode: string) => {
      const lines = `Host: x\r\nContent-Length: 0\r\nConnection: close\r\n${mode}\r\n`
      return (await exchange(server.url, `POST /c/${some.publicId}?c=x HTTP/1.1\r\n${lines}`))
        .status
    }
    const modes = ['navigate', 'nested-navigate', 'Navigate', 'cors\r\nSec-Fetch-Mode: navigate']
    for (const mode of modes) {
      for (const some of [inbox, echo]) {
        assert.equal(await asked(some, `Sec-Fetch-Mode: ${mode}\r\n`), 204, mode)
      }
    }
    for (const some of [inbox, echo]) {
      assert.equal(await asked(some, 'Sec-Fetch-Mode: cors\r\n'), 200)
      assert.equal(await asked(some, ''), 200)
    }
  })

  test('it is no place to host anything: whoever fetches it stores it, and does not run, show or keep it', async () => {
    const server = await theServer()
    const chosen: CatchResponse[] = [OK, { echo: { query: 'c' } }, ZOOM]
    for (const response of chosen) {
      const { inbox } = await anAnswering(server, response)
      const { headers, status } = await fetch(`${server.url}/c/${inbox.publicId}?c=x`, {
        method: 'POST',
        body: zoomChallenge('abc'),
      })
      assert.equal(status, 200)
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.equal(headers.get('content-security-policy'), "sandbox; default-src 'none'")
      assert.equal(headers.get('content-disposition'), 'attachment')
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.equal(headers.get('access-control-allow-credentials'), null)
      assert.equal(headers.get('set-cookie'), null)
    }
  })

  test('every status that can be chosen is sent, with its wait', async () => {
    const server = await theServer()
    const { ask, inbox, owner } = await anAnswering(server, OK)
    for (const status of [200, 201, 202, 400, 403, 404, 409, 410, 422, 429] as const) {
      const response = { status, body: 'later ü', retryAfterSeconds: 3600 }
      assert.deepEqual(await owner.setResponse(response), response)
      assert.deepEqual(await owner.response(), response)
      assert.deepEqual(await ask('', { method: 'POST' }), {
        status,
        body: 'later ü',
        type: 'text/plain; charset=utf-8',
      })
      const { headers } = await fetch(`${server.url}/c/${inbox.publicId}`, { method: 'POST' })
      assert.equal(headers.get('retry-after'), '3600')
    }
    await owner.setResponse({ status: 204, retryAfterSeconds: 5 })
    assert.deepEqual(await ask('', { method: 'POST' }), NOTHING)
    await owner.deleteResponse()
    await owner.deleteResponse()
    assert.deepEqual(await owner.response(), { status: 204 })
    assert.deepEqual(await ask('', { method: 'POST' }), NOTHING)
  })

  test('what is out of bounds cannot be chosen, and the answer says what is wrong with it', async () => {
    const server = await theServer()
    const { inbox, owner } = await anAnswering(server, OK)
    const url = `${server.url}/api/catch/${inbox.publicId}/response`
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${inbox.ownerToken}`,
    }
    const put = async (body: string) => {
      const answer = await fetch(url, { method: 'PUT', headers, body })
      return { status: answer.status, text: await answer.text() }
    }
    const refused: [note: string, body: unknown, field: string | null][] = [
      ...[
        100,
        101,
        205,
        301,
        302,
        307,
        401,
        402,
        500,
        502,
        503,
        600,
        0,
        -200,
        200.5,
        '200',
        null,
      ].map((status): [string, unknown, string] => [`status ${status}`, { status }, 'status']),
      ['a body with 204', { status: 204, body: 'x' }, 'body'],
      ['4097 bytes', { status: 200, body: 'x'.repeat(4097) }, 'body'],
      ['4098 bytes of two each', { status: 200, body: 'é'.repeat(2049) }, 'body'],
      ['half a character', { status: 200, body: '\ud800' }, 'body'],
      ...[
        'text/html',
        'image/svg+xml',
        'application/javascript',
        'text/plain; charset=utf-16',
        '',
      ].map((contentType): [string, unknown, string] => [
        contentType,
        { status: 200, contentType },
        'contentType',
      ]),
      ['an hour and a second', { status: 429, retryAfterSeconds: 3601 }, 'retryAfterSeconds'],
      ['a wait before now', { status: 429, retryAfterSeconds: -1 }, 'retryAfterSeconds'],
      ['headers', { status: 200, headers: { location: 'https://example.com' } }, null],
      ['two forms', { status: 200, echo: { json: 'a' } }, null],
      ['an echo of both', { echo: { json: 'a', query: 'a' } }, 'echo'],
      ['an echo of a header', { echo: { header: 'cookie' } }, 'echo'],
      ['an echo of no name', { echo: { json: '' } }, 'echo'],
      ['a long name', { echo: { json: 'a'.repeat(101) } }, 'echo'],
      ['another provider', { hmac: { provider: 'slack', secret: 'a' } }, 'hmac'],
      ['no secret', { hmac: { provider: 'zoom', secret: '' } }, 'hmac'],
      [
        'a secret that was pasted with its line',
        { hmac: { provider: 'zoom', secret: 'a\n' } },
        'hmac',
      ],
      ['a long secret', { hmac: { provider: 'zoom', secret: 'a'.repeat(257) } }, 'hmac'],
      ['nothing', {}, 'status'],
      ['a list', [], null],
    ]
    for (const [note, body, field] of refused) {
      const { status, text } = await put(JSON.stringify(body))
      const told = JSON.parse(text)
      assert.deepEqual([status, told.error], [400, 'invalid settings'], note)
      assert.equal(told.field ?? null, field, note)
      assert.ok(told.expected, note)
      assert.doesNotMatch(text, /aaaa|éé|xxxx/, note)
    }
    for (const body of ['', '{', '{"status":200,"status":204}', '[['.repeat(40)]) {
      assert.equal(JSON.parse((await put(body)).text).error, 'invalid request body', body)
    }
    assert.deepEqual(await put(`{"status":200,"body":"${'x'.repeat(33_000)}"}`), {
      status: 400,
      text: '{"error":"request too large"}',
    })
    assert.deepEqual(await owner.response(), OK)
    await owner.setResponse({ status: 200, body: 'é'.repeat(2048) })
    await owner.setResponse({ status: 200, body: '\u0001'.repeat(4096) })
  })

  test('an echo is one line of plain text of at most 1 KiB that came once, and everything else gets 204', async () => {
    const server = await theServer()
    const { ask, inbox } = await anAnswering(server, { echo: { query: 'c' } })
    const text = 'x'.repeat(1024)
    assert.equal((await ask(`?c=${text}`)).body, text)
    assert.equal((await ask('?c=%3Cscript%3E&d=1')).type, 'text/plain; charset=utf-8')
    const ungiven = [
      ...['', '?c=', '?C=x', '?d=x', '?c=a&c=b', `?c=${text}x`, '?c=a%0d%0ab', '?c=%1b%5b2J'],
      ...['?c=%00', '?c=%7f', '?c=%c3%bc', '?c=%ff', '?c=%e2%80%ae'],
    ]
    for (const query of ungiven) assert.deepEqual(await ask(query), NOTHING, query)

    const { ask: post } = await anAnswering(server, { echo: { json: 'c' } })
    const json = (body: string | Uint8Array<ArrayBuffer>) => post('', { method: 'POST', body })
    assert.equal((await json('{"a":[1],"c":"yes"}')).body, 'yes')
    const padded = (bytes: number) =>
      `{"c":"yes","p":"${'p'.repeat(bytes - '{"c":"yes","p":""}'.length)}"}`
    const standard = await anInbox(server, 'standard')
    await server.mayfly.catch(standard).setResponse({ echo: { json: 'c' } })
    const wide = asking(server, standard)
    assert.equal((await wide('', { method: 'POST', body: padded(65_536) })).body, 'yes')
    assert.deepEqual(await wide('', { method: 'POST', body: padded(65_537) }), NOTHING)
    const others = [
      ...[
        '',
        'c',
        '"c"',
        '{"c":1}',
        '{"c":null}',
        '{"c":["x"]}',
        '{"d":"x"}',
        '{"c":"x"',
        '[{"c":"x"}]',
      ],
      ...['{"c":"a","c":"b"}', '{"c":"a\\nb"}', '{"c":"\\u202e"}', '{"c":"ü"}', '{"c":"\\ud800"}'],
      ...[
        `{"c":"x","d":${'['.repeat(40)}${']'.repeat(40)}}`,
        `{"c":"x","d":[${'1,'.repeat(2000)}1]}`,
      ],
      ...[Buffer.from('{"c":"x"}', 'utf16le'), Buffer.from('\ufeff{"c":"x"}').subarray(1)],
    ]
    for (const body of others) assert.deepEqual(await json(body), NOTHING, String(body))
    const { ask: inherited } = await anAnswering(server, { echo: { json: '__proto__' } })
    assert.deepEqual(await inherited('', { method: 'POST', body: '{}' }), NOTHING)
    assert.equal((await eventsOf(server, inbox)).length, 2 + ungiven.length)
  })

  test('an HMAC signs only what a challenge can be, so that no event can be signed with it', async () => {
    const server = await theServer()
    const { ask } = await anAnswering(server, ZOOM)
    const zoom = (body: string) => ask('', { method: 'POST', body })
    const longest = 'A'.repeat(128)
    assert.deepEqual(JSON.parse((await zoom(zoomChallenge(longest))).body), {
      plainToken: longest,
      encryptedToken: createHmac('sha256', 'shh').update(longest).digest('hex'),
    })
    const tokens = [
      '',
      `${longest}A`,
      'v0:1739923528:{}',
      'a b',
      '{"a":1}',
      'a\n',
      'ü',
      'a:b',
      'a"',
    ]
    for (const token of tokens) assert.deepEqual(await zoom(zoomChallenge(token)), NOTHING, token)
    const others = ['{"event":"endpoint.url_validation"}', '{"payload":{"plainToken":"a"}}']
    for (const body of [...others, zoomChallenge('a').replace('endpoint', 'x')]) {
      assert.deepEqual(await zoom(body), NOTHING, body)
    }

    const { ask: x } = await anAnswering(server, { hmac: { provider: 'x', secret: 'shh' } })
    const mac = createHmac('sha256', 'shh').update('a+/=_-9').digest('base64')
    assert.deepEqual(await x('?crc_token=a%2B%2F%3D_-9'), {
      status: 200,
      type: 'application/json; charset=utf-8',
      body: `{"response_token":"sha256=${mac}"}`,
    })
    const queries = ['', '?crc_token=', '?crc_token=a&crc_token=b', '?crc_token=%7B%22a%22%3A1%7D']
    for (const query of [...queries, `?crc_token=${longest}A`]) {
      assert.deepEqual(await x(query), NOTHING, query)
    }
  })

  test('a request that is refused is answered as without it, and one whose answer it is has been stored', async () => {
    const server = await theServer()
    const { ask, inbox, owner, events } = await anAnswering(server, OK)
    const refused = await answerOf(
      await fetch(`${server.url}/c/${inbox.publicId}`, {
        method: 'POST',
        body: 'x'.repeat(65_537),
      }),
    )
    assert.deepEqual(refused, { status: 400, text: '{"error":"request too large"}' })
    await ask('', { method: 'POST', body: 'kept' })
    assert.deepEqual(
      (await events()).map(({ body }) => body),
      ['kept'],
    )
    await owner.destroy()
    const gone = await answerOf(
      await fetch(`${server.url}/c/${inbox.publicId}`, { method: 'POST' }),
    )
    assert.deepEqual(gone, UNAVAILABLE)
  })
})

test('a secret is sealed in the store, answers after a restart under a new MAYFLY_SECRET, is sealed anew then, and goes with its answer', async (t) => {
  const old = '11'.repeat(32)
  const server = await startServer(t, { MAYFLY_SECRET: old })
  const { inbox, ask } = await anAnswering(server, ZOOM)
  const db = await openDatabase(server.databaseUrl)
  t.after(() => db.close())
  const stored = async () => (await db.read('select response, response_secret from catch_inbox'))[0]
  const before = await stored()
  assert.equal(before?.response, '{"hmac":{"provider":"zoom"}}')
  assert.ok(!Buffer.from(before?.response_secret as Uint8Array).includes('shh'))
  assert.ok(!server.logged.join().includes('shh'))
  assert.equal((await ask('', { method: 'POST', body: zoomChallenge('a') })).status, 200)
  await server.stop()

  const current = '22'.repeat(32)
  const both = { MAYFLY_DATABASE_URL: server.databaseUrl, MAYFLY_SECRET: `${current},${old}` }
  const second = await startServer(t, both)
  const challenge = { method: 'POST', body: zoomChallenge('a') }
  assert.equal((await asking(second, inbox)('', challenge)).status, 200)
  assert.notDeepEqual((await stored())?.response_secret, before?.response_secret)
  await second.stop()

  const third = await startServer(t, { ...both, MAYFLY_SECRET: current })
  assert.equal((await asking(third, inbox)('', challenge)).status, 200)
  await third.mayfly.catch(inbox).setResponse({ status: 202 })
  assert.deepEqual(await stored(), { response: '{"status":202}', response_secret: null })
})

const ZOOM: CatchResponse = { hmac: { provider: 'zoom', secret: 'shh' } }

const zoomChallenge = (plainToken: string) =>
  JSON.stringify({ event: 'endpoint.url_validation', payload: { plainToken } })

/** Sends a request to the inbox, as a sender that reads the answer. */
const asking =
  ({ url }: { url: string }, { publicId }: CatchCapability) =>
  async (rest: string, request: RequestInit = {}) => {
    const answer = await fetch(`${url}/c/${publicId}${rest}`, request)
    const type = answer.headers.get('content-type')
    return { status: answer.status, type, body: await answer.text() }
  }

/** An inbox whose owner has chosen this answer. */
async function anAnswering(server: TestServer, response: CatchResponse) {
  const inbox = await anInbox(server)
  const owner = server.mayfly.catch(inbox)
  await owner.setResponse(response)
  return { inbox, owner, ask: asking(server, inbox), events: () => eventsOf(server, inbox) }
}
