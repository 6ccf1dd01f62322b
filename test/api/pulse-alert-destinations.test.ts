/** Where a monitor's alerts go: what an owner may ask for, how it is tested, and what the store holds of it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { type AlertsSet, alerts, aWorld, put } from '../support/alerts.ts'
import { anInbox } from '../support/catch.ts'
import { aMonitor, assertNowhere } from '../support/pulse.ts'
import { aReceiver, echoOf, verified } from '../support/receiver.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'

const SEALED = 'select sealed_secret from alert_destination'

test('a destination is told once it has answered a test that the reference library verifies', async (t) => {
  const { receiver, server, monitor } = await aWorld(t)
  const set = await put(server, monitor, [{ url: receiver.url }])
  assert.equal(set.status, 200)
  const [destination] = (set.body as AlertsSet).destinations
  assert.ok(destination?.secret)
  const { id, secret, ...rest } = destination
  assert.deepEqual(rest, { format: 'standard', host: receiver.host, state: 'active', test: '2xx' })
  const [sent] = receiver.received
  assert.ok(sent)
  assert.deepEqual(verified(sent, secret), sent.body)
  assert.equal(sent.headers['mayfly-alert'], 'test')
  const shown = await alerts(server, monitor)
  assert.deepEqual(shown.body, {
    destinations: [{ id, format: 'standard', host: receiver.host, state: 'active' }],
    deliveries: [],
  })
})

test('a destination that answers 2xx to anything, without reading, is told nothing', async (t) => {
  const { receiver, server, monitor } = await aWorld(t)
  receiver.answer = (_received, response) => void response.writeHead(200).end('ok')
  const set = await put(server, monitor, [{ url: receiver.url }])
  const [destination] = (set.body as AlertsSet).destinations
  assert.deepEqual([destination?.state, destination?.test], ['untested', 'no echo'])
  receiver.answer = (received, response) => void response.end(JSON.stringify(echoOf(received)))
  const again = await put(server, monitor, [{ id: destination?.id ?? '' }])
  const [tested] = (again.body as AlertsSet).destinations
  assert.deepEqual([tested?.state, tested?.test, tested?.secret], ['active', '2xx', null])
})

test('a destination that is kept by its id or its URL keeps its secret, and is not tested again', async (t) => {
  const { receiver, server, monitor } = await aWorld(t)
  const first = await put(server, monitor, [{ url: receiver.url }])
  const [one] = (first.body as AlertsSet).destinations
  assert.ok(one?.secret)
  const [sealed] = await query(server, SEALED)
  const same = await put(server, monitor, [{ url: receiver.url }])
  assert.deepEqual(same.body.destinations, [{ ...one, secret: null, test: null }])
  assert.deepEqual(await query(server, SEALED), [sealed])
  const both = await put(server, monitor, [{ id: one.id }, { url: `${receiver.url}/other` }])
  const kept = (both.body as AlertsSet).destinations.map(({ id, state, secret }) => [
    ...[id === one.id, state, secret === null],
  ])
  assert.deepEqual(kept, [
    [true, 'active', true],
    [false, 'active', false],
  ])
  assert.equal(receiver.received.length, 2)
  const stranger = await aMonitor(server)
  const refused = await put(server, stranger, [{ id: one.id }])
  assert.deepEqual(
    [refused.status, refused.body.expected],
    [400, 'the id of a destination that is set'],
  )
})

test('a chat need not echo anything', async (t) => {
  const { receiver, server, monitor } = await aWorld(t)
  receiver.answer = (_received, response) => void response.writeHead(200).end('ok')
  for (const format of ['slack', 'discord', 'ntfy']) {
    const set = await put(server, monitor, [{ url: receiver.url, format }])
    assert.equal((set.body as AlertsSet).destinations[0]?.state, 'active', format)
  }
})

test('a test that is answered 5xx, by a redirect, or not at all, is shown as that and no more', async (t) => {
  const { receiver, server, monitor } = await aWorld(t)
  for (const [status, shown] of [
    [503, '5xx'],
    [404, '4xx'],
    [307, 'failed'],
  ] as const) {
    receiver.answer = (_received, response) =>
      void response.writeHead(status, { location: receiver.url }).end('a secret of the receiver')
    const set = await put(server, monitor, [{ url: `${receiver.url}/${status}` }])
    assert.equal((set.body as AlertsSet).destinations[0]?.test, shown)
    assert.ok(!JSON.stringify(set.body).includes('a secret'))
  }
  receiver.answer = (_received, response) => void response.destroy()
  const set = await put(server, monitor, [{ url: `${receiver.url}/gone` }])
  assert.equal((set.body as AlertsSet).destinations[0]?.test, 'failed')
})

test('a destination that is left out and set again gets another secret', async (t) => {
  const { receiver, server, monitor } = await aWorld(t)
  const secrets: (string | null | undefined)[] = []
  for (const destinations of [[{ url: receiver.url }], [], [{ url: receiver.url }]]) {
    const set = (await put(server, monitor, destinations)).body as AlertsSet
    secrets.push(set.destinations[0]?.secret)
  }
  assert.match(secrets[2] ?? '', /^whsec_/)
  assert.notEqual(secrets[0], secrets[2])
})

test('neither the URL of a destination nor its secret is in the store or the log in the clear', async (t) => {
  const { receiver, server, monitor } = await aWorld(t)
  const path = randomBytes(12).toString('hex')
  const set = await put(server, monitor, [{ url: `${receiver.url}/${path}` }])
  const secret = (set.body as AlertsSet).destinations[0]?.secret ?? ''
  await assertNowhere(server, [path, secret, secret.slice('whsec_'.length)])
})

test('what an old secret of the service sealed is sealed under the new one at the next start', async (t) => {
  const [old, current] = ['1', '2'].map((digit) => digit.repeat(64))
  const environment: Record<string, string> = { MAYFLY_SECRET: old ?? '' }
  const receiver = await aReceiver(t)
  environment.MAYFLY_ALLOWED_HOSTS = receiver.host
  const server = await startServer(t, environment)
  const monitor = await aMonitor(server)
  await put(server, monitor, [{ url: receiver.url }])
  await alerts(server, monitor)
  environment.MAYFLY_SECRET = `${current},${old}`
  await server.restart()
  environment.MAYFLY_SECRET = current ?? ''
  await server.restart()
  assert.ok(!server.logged.some((line) => line.includes('alerts.foreign_secret')))
  const again = (await put(server, monitor, [{ url: receiver.url }])).body as AlertsSet
  assert.deepEqual([again.destinations[0]?.state, receiver.received.length], ['active', 1])
})

describe('an inbox as a destination', () => {
  test('an inbox whose token is proven is told by an authenticated event', async (t) => {
    const { server, monitor } = await aWorld(t)
    const inbox = await anInbox(server)
    const { publicId, ingestToken } = inbox
    const set = await put(server, monitor, [{ inbox: publicId, ingestToken }])
    const [destination] = (set.body as AlertsSet).destinations
    assert.deepEqual(
      [destination?.format, destination?.host, destination?.state],
      ['inbox', publicId, 'active'],
    )
    const events = await Array.fromAsync(server.mayfly.catch(inbox).events())
    assert.equal(events.length, 1)
    assert.equal(events[0]?.access, 'authenticated')
    const headers = new Map(events[0]?.headers.map(({ name, value }) => [name, value]))
    assert.equal(headers.get('mayfly-alert'), 'test')
    await assertNowhere(server, [ingestToken])
  })

  test('an inbox whose token was replaced since is told like by anybody, until the new token is proven', async (t) => {
    const { server, monitor } = await aWorld(t)
    const { publicId, ingestToken, ...inbox } = await anInbox(server)
    const owner = server.mayfly.catch({ ...inbox, publicId })
    await put(server, monitor, [{ inbox: publicId, ingestToken }])
    const { token } = await owner.rotateToken('ingest')
    await server.mayfly.pulse(monitor).fail()
    await until('the alert', async () => (await owner.page()).events.length === 2)
    await put(server, monitor, [{ inbox: publicId, ingestToken: token }])
    const { events } = await owner.page({ after: 0 })
    assert.deepEqual(
      events.map(({ access }) => access),
      ['authenticated', 'public', 'authenticated'],
    )
  })

  test('what the inbox does not take is shown as refused, and is not stored', async (t) => {
    const { server, monitor } = await aWorld(t)
    const inbox = await anInbox(server)
    await query(server, 'update catch_inbox set max_bytes_per_request = 10')
    const { publicId, ingestToken } = inbox
    const set = await put(server, monitor, [{ inbox: publicId, ingestToken }])
    assert.equal((set.body as AlertsSet).destinations[0]?.test, '4xx')
    assert.deepEqual(await Array.fromAsync(server.mayfly.catch(inbox).events()), [])
  })

  test("nobody makes the service send to a stranger's inbox", async (t) => {
    const { server, monitor } = await aWorld(t)
    const [own, foreign] = [await anInbox(server), await anInbox(server)]
    for (const [inbox, ingestToken] of [
      [foreign.publicId, own.ingestToken],
      [foreign.publicId, foreign.ownerToken],
      [newId('catch'), own.ingestToken],
      ['catch_x', own.ingestToken],
    ]) {
      const refused = await put(server, monitor, [{ inbox, ingestToken }])
      assert.deepEqual(refused, {
        status: 400,
        body: {
          error: 'invalid destinations',
          field: 'ingestToken',
          expected: 'the ingest token of that inbox',
        },
      })
    }
    assert.deepEqual(await Array.fromAsync(server.mayfly.catch(foreign).events()), [])
  })
})

describe('what no destination may be', () => {
  const rows: [note: string, destination: unknown, field: string][] = [
    ['plain http', { url: 'http://hooks.example.com/' }, 'url'],
    ['another port', { url: 'https://hooks.example.com:8443/' }, 'url'],
    ['an address', { url: 'https://10.0.0.1/' }, 'url'],
    ['an address in decimal', { url: 'https://2130706433/' }, 'url'],
    ['a name of the inside', { url: 'https://metadata.google.internal/' }, 'url'],
    ['a user in the URL', { url: 'https://u:p@hooks.example.com/' }, 'url'],
    ['no URL', { url: 'hooks' }, 'url'],
    ['a topic that is none', { url: 'https://ntfy.sh/', format: 'ntfy' }, 'url'],
    ['another format', { url: 'https://hooks.example.com/', format: 'teams' }, 'format'],
    ['another member', { url: 'https://hooks.example.com/', method: 'GET' }, 'destinations'],
    ['an inbox without a token', { inbox: 'catch_x' }, 'ingestToken'],
    ['a long URL', { url: `https://hooks.example.com/${'x'.repeat(2048)}` }, 'url'],
    ['no object', 'https://hooks.example.com/', 'destinations'],
  ]
  test('no destination is what none may be, and the error names the member', async (t) => {
    const { server, monitor } = await aWorld(t)
    for (const [note, destination, field] of rows) {
      const { status, body } = await put(server, monitor, [destination])
      const told = [status, body.error, body.field]
      assert.deepEqual(told, [400, 'invalid destinations', field], note)
    }
    assert.deepEqual(await query(server, 'select * from alert_destination'), [])
  })

  test('no destination is this service, by any of its own addresses', async (t) => {
    const { server, monitor } = await aWorld(t, {
      MAYFLY_BASE_URL: 'https://mayfly.example.com',
      MAYFLY_SIMULATOR: 'public',
      MAYFLY_TRUSTED_PROXIES: '127.0.0.1/32',
    })
    const refused = await put(server, monitor, [{ url: 'https://mayfly.example.com/c/catch_x' }])
    assert.equal(refused.body.field, 'url')
  })

  test('no URL of a destination has a token of this service in it, escaped or not', async (t) => {
    const { server, monitor } = await aWorld(t)
    const { ownerToken } = monitor
    const escaped = `%70${ownerToken.slice(1)}`
    const again = (text: string, times: number): string =>
      times === 0 ? text : again(text.replaceAll('%', '%25'), times - 1)
    const spellings = [
      ...[ownerToken, escaped, ...[1, 2, 3, 4, 5, 20].map((times) => again(escaped, times))],
      // Half of it, among escapes that are none, and of bytes that are no text.
      ...[`100%/${escaped}`, `%zz/${escaped}`, `%ff%e2/${escaped}`, `%${again(escaped, 1)}`],
    ]
    for (const token of spellings) {
      const refused = await put(server, monitor, [{ url: `https://hooks.example.com/${token}` }])
      assert.equal(refused.body.expected, 'a URL without a token of this service')
    }
  })

  test('no monitor has more than three destinations, or one of them twice', async (t) => {
    const { receiver, server, monitor } = await aWorld(t)
    const many = [1, 2, 3, 4].map((i) => ({ url: `${receiver.url}/${i}` }))
    assert.equal((await put(server, monitor, many)).body.expected, 'at most 3')
    const twice = [{ url: receiver.url }, { url: receiver.url }]
    assert.equal((await put(server, monitor, twice)).body.expected, 'each destination once')
    assert.equal((await put(server, monitor, many.slice(1))).status, 200)
    assert.equal(receiver.received.length, 3)
  })

  test('two changes at once leave the destinations of one of them', async (t) => {
    const { receiver, server, monitor } = await aWorld(t)
    const set = (name: string) =>
      put(
        server,
        monitor,
        [1, 2, 3].map((i) => ({ url: `${receiver.url}/${name}${i}` })),
      )
    const answers = await Promise.all([set('a'), set('b')])
    for (const { status } of answers) assert.equal(status, 200)
    const rows = await query(server, 'select * from alert_destination')
    assert.equal(rows.length, 3)
  })
})

describe('tests of destinations are no way to bother strangers', () => {
  test('a monitor has five tests an hour', async (t) => {
    const { receiver, server, monitor } = await aWorld(t, { MAYFLY_RATE_LIMITS: 'on' })
    for (let i = 0; i < 5; i++) {
      assert.equal((await put(server, monitor, [{ url: `${receiver.url}/${i}` }])).status, 200)
    }
    assert.equal((await put(server, monitor, [{ url: `${receiver.url}/5` }])).status, 429)
    assert.equal(receiver.received.length, 5)
    assert.equal((await put(server, monitor, [{ url: `${receiver.url}/4` }])).status, 200)
  })

  for (const [note, format, destination] of [
    ['a host and path has ten tests a day, whoever asks', 'standard', '?'],
    [
      'ten tests a day go to the URL that ntfy is called by, whatever the topics',
      'ntfy',
      '/topic-',
    ],
  ] as const) {
    test(note, async (t) => {
      const { receiver, server } = await aWorld(t, { MAYFLY_RATE_LIMITS: 'on' })
      const base = format === 'ntfy' ? `http://${receiver.host}` : receiver.url
      const statuses: number[] = []
      for (let i = 0; i < 3; i++) {
        const monitor = await aMonitor(server)
        for (let j = 0; j < 4; j++) {
          const url = `${base}${destination}${i}${j}`
          statuses.push((await put(server, monitor, [{ url, format }])).status)
        }
      }
      assert.deepEqual(statuses, [...Array(10).fill(200), 429, 429])
      assert.equal(receiver.received.length, 10)
      if (format === 'ntfy') for (const { path } of receiver.received) assert.equal(path, '/')
    })
  }
})

test('an operator who has switched alerts off has none set, tested or sent', async (t) => {
  const { receiver, server, monitor } = await aWorld(t, { MAYFLY_OUTBOUND: 'off' })
  const set = await put(server, monitor, [{ url: receiver.url }])
  assert.deepEqual(set, { status: 503, body: { error: 'alerts unavailable' } })
  assert.deepEqual((await alerts(server, monitor)).body, { destinations: [], deliveries: [] })
  assert.deepEqual(receiver.received, [])
})
