import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { commandLine } from '../support/command-line.ts'
import { between } from '../support/serving.ts'
import { until } from '../support/until.ts'
import { anInbox, aProxy, linesOf, listenOnce, sendAll } from './listening.ts'

describe('catch listen --forward', () => {
  test('catch listen --forward sends on each webhook once and in order, killed and restarted meanwhile', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    const listen = ['catch', 'listen', 'hooks', '--forward', `${receiver.url}/hook`]
    let running = cli.start([...listen, '--since', 'start'])
    // The receiver kills, by what it has got, so that the speed of the machine decides nothing: before it answers,
    // or after, when the next webhook may be on its way.
    const kills = [6, 15, 26, 40, 52, 64, 76, 88]
    let round = 0
    receiver.answer = () => {
      if (receiver.got.length !== kills[round]) return 200
      if (round % 4 === 2) setImmediate(() => running.child.kill('SIGKILL'))
      else running.child.kill(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
      return 200
    }

    const sending = sendAll(ingest, 100)
    for (; round < kills.length; round++) {
      const { code, err } = await running.ended
      assert.equal(code, round % 2 === 0 ? null : 130, err)
      running = cli.start(listen)
    }
    await sending
    const { code, err } = await running.ended
    assert.equal(code, 0, err)
    assert.match(err, /No more can come/)

    const got = receiver.bodies()
    const all = Array.from({ length: 100 }, (_, i) => `webhook ${i + 1}`)
    const missing = all.filter((one) => !got.includes(one))
    assert.deepEqual(
      got,
      all.filter((one) => !missing.includes(one)),
    )
    // Sent or not: a kill came before the answer, so it has failed.
    receiver.got.length = 0
    await cli.run(['catch', 'replay', 'hooks', '--failed', '--to', receiver.url])
    const again = receiver.bodies()
    assert.deepEqual(
      missing.filter((one) => !again.includes(one)),
      [],
    )
    assert.ok(again.length > 0 && again.length <= kills.length, String(again))
  })

  test('catch listen --forward sends method, sub-path, query, headers and bytes as they came', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    const bytes = Buffer.from([0, 255, 254, 13, 10])
    await fetch(`${ingest}/github/%20x?a=1&b=%2F`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/x-thing', 'x-signature': 'sha256=abc' },
      body: bytes,
    })
    const [told] = await listenOnce(cli, `${receiver.url}/hook/?token=7`)
    const [got] = receiver.got
    assert.ok(got)
    assert.equal(`${got.method} ${got.url}`, 'PATCH /hook/github/%20x?token=7&a=1&b=%2F')
    assert.deepEqual(got.body, bytes)
    const { host, connection, ...headers } = got.headers
    assert.equal(host, new URL(receiver.url).host)
    assert.equal(connection, 'close')
    assert.equal(headers['content-type'], 'application/x-thing')
    assert.equal(headers['x-signature'], 'sha256=abc')
    assert.equal(headers['content-length'], '5')
    assert.equal(headers['x-mayfly-event-id'], told?.id)
    assert.equal(headers['x-mayfly-event-sequence'], '1')
    assert.deepEqual(
      [told?.sequence, told?.method, told?.path, told?.bodyBytes, told?.status],
      [1, 'PATCH', '/github/%20x', 5, 200],
    )
  })

  test("catch listen --forward sends nothing outside of the receiver's path, whatever path a stranger asks for", async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    const ways = [
      ...['/../admin', '/a/%2E./admin', '/..%2fadmin', '/..\\admin', '/..;x/admin', '/..'],
      ...['/..#x', '/a/%2e%2e#/b', '/..%23x', '/..%3fx', '/..%3bx/admin'],
    ]
    for (const way of ways) await sendAsItIs(ingest + way)
    for (const way of ['/a..b/..c', '/...', '/%2e%2e%2e']) await sendAsItIs(ingest + way)
    const listen = ['catch', 'listen', 'hooks', '--forward', `${receiver.url}/hook`]
    const running = cli.start([...listen, '--since', 'start'])
    await until('all are told', () => running.out().split('\n').length > ways.length + 3)
    running.child.kill('SIGTERM')
    const { out } = await running.ended
    assert.deepEqual(
      receiver.got.map(({ url }) => url),
      ['/hook/a..b/..c', '/hook/...', '/hook/%2e%2e%2e'],
    )
    const [told] = out.split('\n')
    assert.match(String(told), /"status":null,.*"error":"its path leads outside the address/)

    const replayed = await cli.run(['catch', 'replay', 'hooks', '1', '--to', receiver.url])
    assert.equal(replayed.code, 1)
    assert.match(replayed.out, /"error":"its path leads outside the address/)
    assert.equal(receiver.got.length, 3)
  })

  test('catch listen --forward waits for a receiver that is down, and goes on in order', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    await receiver.close()
    await sendAll(ingest, 3)
    const running = cli.start([
      ...['catch', 'listen', 'hooks', '--since', 'start'],
      ...['--forward', receiver.url],
    ])
    await until('it says that it waits', () => /cannot be reached/.test(running.err()))
    await receiver.reopen()
    await until('all have come', () => receiver.got.length === 3)
    assert.deepEqual(receiver.bodies(), ['webhook 1', 'webhook 2', 'webhook 3'])
    running.child.kill('SIGINT')
    assert.equal((await running.ended).code, 130)
  })

  test('catch listen --forward takes over from another on the same inbox, which ends before it sends anything more', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    const listen = ['catch', 'listen', 'hooks', '--forward', receiver.url]
    const first = cli.start([...listen, '--json'])
    await until('it listens', () => /Listening on hooks/.test(first.err()))
    const second = cli.start([...listen, '--json'])
    await until('the other one listens too', () => /Listening on hooks/.test(second.err()))
    await sendAll(ingest, 3)
    const stops = /Another process forwards the webhooks of this inbox now, so this one stops\./
    await until('the first one stops', () => stops.test(first.err()))
    assert.equal((await first.ended).code, 1)
    await until('all are forwarded', () => second.out().trim().split('\n').length === 3)
    assert.deepEqual(receiver.bodies(), ['webhook 1', 'webhook 2', 'webhook 3'])
  })

  test('catch listen --forward takes what its filter matches, and nothing else', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    const send = (body: string, type: string, method = 'POST') =>
      fetch(ingest, { method, headers: { 'content-type': type }, body })
    await send('{"a":"OPENED"}', 'application/json; charset=utf-8')
    await send('opened', 'text/plain')
    await send('{"a":"opened"}', 'application/json', 'PUT')
    await send('{"a":"closed"}', 'application/json')
    const headers = { 'content-type': 'Application/JSON', 'content-encoding': 'gzip' }
    const compressed = gzipSync('{"b":"opened"}')
    await fetch(ingest, { method: 'POST', headers, body: compressed })
    const listen = ['catch', 'listen', 'hooks', '--forward', receiver.url]
    const filter = ['--filter', 'method=post,contentType=application/json,q=opened']
    await cli.run([...listen, '--since', 'start', '--once', ...filter])
    await cli.run([...listen, '--once', ...filter])
    assert.deepEqual(
      receiver.got.map(({ body }) => body),
      [Buffer.from('{"a":"OPENED"}'), compressed],
    )
  })

  test('catch listen --forward shows what a receiver says that fails, without its control characters', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    receiver.says = 'no\u001b[2J such hook'
    receiver.answer = () => 422
    await sendAll(ingest, 1)
    const [told] = await listenOnce(cli, receiver.url)
    assert.equal(told?.status, 422)
    assert.equal(told?.answer, receiver.says)
    const { err } = await cli.run([
      ...['catch', 'listen', 'hooks', '--since', 'start', '--forward', receiver.url],
      ...['--retry', '1', '--once'],
    ])
    assert.match(err, /422 in \d+ ms, it says: no\\x1b\[2J such hook/)
    const replayed = await cli.run(['catch', 'replay', 'hooks', '1', '--to', receiver.url])
    assert.equal(linesOf(replayed.out)[0]?.answer, told?.answer)
    receiver.answer = () => 200
    const fine = await cli.json(['catch', 'replay', 'hooks', '1', '--to', receiver.url])
    assert.equal('answer' in fine, false)
  })

  test('catch listen names the address of the inbox, and how many earlier webhooks it skips', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    await sendAll(ingest, 2)
    const brief = ['--once', '--timeout', '1']
    const listen = ['catch', 'listen', 'hooks', '--forward', receiver.url]
    const first = await cli.run([...listen, ...brief])
    assert.ok(first.err.includes(`webhooks to ${ingest} are forwarded to ${receiver.url}`))
    assert.match(
      first.err,
      /2 earlier webhooks are skipped\. To begin with the first: --since start/,
    )
    // Another start goes on where this one ended, and skips nothing.
    assert.doesNotMatch((await cli.run([...listen, ...brief])).err, /skipped/)
    const watching = await cli.run(['catch', 'listen', 'hooks', ...brief])
    assert.match(
      watching.err,
      /2 earlier webhooks are skipped\. To begin with the first: --since start/,
    )
    assert.equal(receiver.got.length, 0)
  })

  test('catch listen says when its connection is lost, and when it is back, and misses nothing', async (t) => {
    const { cli, ingest, url } = await anInbox(t)
    const proxy = await aProxy(t, url)
    const saved = await cli.json(['show', 'hooks', '--reveal'])
    const file = JSON.stringify({ ...saved, baseUrl: proxy.url })
    const away = await commandLine(t, proxy.url)
    assert.equal((await away.run(['import', '-', '--name', 'hooks'], { input: file })).code, 0)
    const running = away.start(['catch', 'listen', 'hooks'])
    await until('it listens', () => /Waiting for webhooks/.test(running.err()))
    await sendAll(ingest, 1)
    await until('the first is shown', () => running.out().includes('webhook 1'))
    proxy.cut()
    await until('it says so', () => /The connection is lost\./.test(running.err()))
    await sendAll(ingest, 1)
    proxy.mend()
    await until('it is back', () => /The connection is back\./.test(running.err()))
    await until('the second is shown', () => running.out().trim().split('\n').length === 2)
    proxy.cut()
    await until('it says so again', () => running.err().match(/is lost\./g)?.length === 2)
    assert.equal(running.err().match(/is back\./g)?.length, 1)
    running.child.kill('SIGTERM')
    await running.ended
  })

  test('catch listen --forward ends where the inbox is gone', async (t) => {
    const { cli, receiver } = await anInbox(t)
    const running = cli.start(['catch', 'listen', 'hooks', '--forward', receiver.url, '--json'])
    await until('it listens', () => /Listening on hooks/.test(running.err()))
    const shown = await cli.json(['show', 'hooks', '--reveal'])
    await fetch(`${shown.baseUrl}/api/catch/${shown.publicId}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${shown.ownerToken}` },
    })
    assert.equal((await running.ended).code, 4)
  })
})

test('a webhook is deleted by its sequence or its id, and the inbox only on request', async (t) => {
  const { cli, ingest } = await anInbox(t)
  await sendAll(ingest, 2)
  assert.equal((await cli.json(['catch', 'delete', 'hooks', '1'])).sequence, 1)
  const again = await cli.run(['catch', 'delete', 'hooks', '1'])
  assert.equal(again.code, 4)
  assert.match(again.err, /^There is no such webhook/)
  for (const id of ['opened', crypto.randomUUID()]) {
    const { code, err } = await cli.run(['catch', 'show', 'hooks', id])
    assert.equal(code, 4)
    assert.match(err, /^There is no such webhook/)
  }
  const { id } = await cli.json(['catch', 'show', 'hooks'])
  assert.equal((await cli.json(['catch', 'delete', 'hooks', String(id)])).sequence, 2)
  const refused = await cli.run(['destroy', 'hooks'])
  assert.equal(refused.code, 2)
  assert.match(refused.err, /Add --yes to confirm/)
  assert.equal((await cli.run(['destroy', 'hooks', '--yes'])).code, 0)
})

test('catch listen without --forward shows what comes, and leaves the position alone', async (t) => {
  const { cli, ingest } = await anInbox(t)
  await sendAll(ingest, 2)
  const { out, code } = await cli.run(['catch', 'listen', 'hooks', '--since', '1', '--once'])
  assert.equal(code, 0)
  assert.equal((JSON.parse(out) as { body: string }).body, 'webhook 2')
  const late = await cli.run(['catch', 'listen', 'hooks', '--timeout', '1'])
  assert.deepEqual([late.code, late.out], [0, ''])
})

/** With the path as it is written, which fetch would tidy up. */
async function sendAsItIs(url: string): Promise<void> {
  const { origin } = new URL(url)
  const sent = request(origin, { path: url.slice(origin.length), method: 'POST' }).end()
  const [{ statusCode }] = (await once(sent, 'response')) as [IncomingMessage]
  assert.equal(statusCode, 204)
}

test('an export writes each page before it asks for the next, oldest first, in each form', async (t) => {
  const { cli, ingest } = await anInbox(t)
  await sendAll(ingest, 60)
  const run = async (...options: string[]) => {
    const { code, out } = await cli.run(['catch', 'export', 'hooks', ...options])
    assert.equal(code, 0)
    return out
  }
  const sequencesIn = (lines: string): number[] =>
    lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).sequence)
  const all = Array.from({ length: 60 }, (_, i) => i + 1)
  assert.deepEqual(sequencesIn(await run()), all)
  assert.deepEqual(sequencesIn(await run('--limit', '2')), [59, 60])
  const entriesIn = (har: string): { _mayfly: { sequence: number } }[] =>
    JSON.parse(har).log.entries
  const har = entriesIn(await run('--as', 'har'))
  assert.deepEqual(
    har.map((entry) => entry._mayfly.sequence),
    all,
  )
  assert.deepEqual(entriesIn(await run('--as', 'har', '--filter', 'q=nothing')), [])
  assert.equal((await run('--as', 'curl', '--limit', '3')).match(/^curl /gm)?.length, 3)

  const half = await between(t, new URL(ingest).origin, (path, response) => {
    if (!path.includes('after=50')) return false
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}')
    return true
  })
  await cli.json(['move', 'hooks', '--to', half])
  const environment = { MAYFLY_URL: half }
  const cut = await cli.run(['catch', 'export', 'hooks'], { environment })
  assert.equal(cut.code, 4)
  assert.deepEqual(sequencesIn(cut.out), all.slice(0, 50))
})
