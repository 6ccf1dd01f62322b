/**
 * `npm run contract:proxies`: nginx and Caddy as in proxies.ts. Here is what takes time, or breaks off: streams, waits,
 * restarts, and what is logged then. Takes two minutes, because some answers are silent for longer than a proxy waits.
 */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { type Ask, behindEach, type Site } from './behind.ts'

const BUY = '/api/buy/catch/spark'
/** What no proxy may write to a log: it stands in paths, queries and headers of the requests below. */
const MARK = `mark${randomBytes(16).toString('hex')}`

behindEach((name, site) => {
  test(`events and waits pass ${name} at once, on both versions`, async () => {
    const inbox = await site().anInbox()
    const owner = { authorization: `Bearer ${inbox.ownerToken}` }
    for (const isHttp2 of [false, true]) {
      const own = site().front.client({ isHttp2 })
      const leaving = new AbortController()
      const stream = await site().ask(`/api/catch/${inbox.publicId}/stream`, {
        headers: owner,
        client: own,
        signal: leaving.signal,
      })
      let text = ''
      stream.body.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      stream.body.on('error', () => {})
      for (const mark of [randomUUID(), randomUUID()]) {
        const newest =
          (await site().mayfly.catch(inbox).page({ limit: 1 })).events[0]?.sequence ?? 0
        const waiting = site().ask(`/api/catch/${inbox.publicId}/events?after=${newest}&wait=30`, {
          headers: owner,
          client: own,
        })
        await until('the wait', async () => (await site().service.open()) === 2)
        await site().stored(inbox, '', { method: 'POST', body: mark })
        await until('the event', () => text.includes(mark), { withinMs: 5_000 })
        const answer = await (await waiting).body.text()
        assert.ok(answer.includes(mark), answer)
      }
      leaving.abort()
      await until('the end', async () => (await site().service.open()) === 0, { withinMs: 5_000 })
    }
  })

  test(`a reader that leaves is gone for the service behind ${name} at once`, async () => {
    const inbox = await site().anInbox()
    const headers = { authorization: `Bearer ${inbox.ownerToken}` }
    for (const path of ['stream', 'events?after=0&wait=30']) {
      for (const isHttp2 of [false, true]) {
        const own = site().front.client({ isHttp2 })
        const leaving = new AbortController()
        const asked = site().ask(`/api/catch/${inbox.publicId}/${path}`, {
          headers,
          client: own,
          signal: leaving.signal,
        })
        const ended = asked.then(({ body }) => body.text()).catch(() => {})
        await until('the reader', async () => (await site().service.open()) === 1)
        leaving.abort()
        await ended
        await until(`${path} to end`, async () => (await site().service.open()) === 0, {
          withinMs: 5_000,
        })
      }
    }
  })

  test(`a stream and a wait on which nothing happens outlive the patience of ${name}`, async () => {
    const inbox = await site().anInbox()
    const headers = { authorization: `Bearer ${inbox.ownerToken}` }
    const leaving = new AbortController()
    const { body } = await site().ask(`/api/catch/${inbox.publicId}/stream`, {
      headers,
      signal: leaving.signal,
    })
    let isCut = false
    let beats = 0
    body.on('end', () => {
      isCut = !leaving.signal.aborted
    })
    body.on('error', () => {
      isCut = !leaving.signal.aborted
    })
    body.setEncoding('utf8').on('data', (chunk: string) => {
      beats += chunk.split(':\n\n').length - 1
    })
    const waited = await site().ask(`/api/catch/${inbox.publicId}/events?after=0&wait=30`, {
      headers,
    })
    assert.equal(waited.statusCode, 200, await waited.body.text())
    // Five lines are 75 seconds; proxies wait for 60.
    await until('five lines', () => beats >= 5 || isCut)
    assert.equal(isCut, false)
    leaving.abort()
  })

  test(`a restart behind ${name} is a gap of moments, and nothing that was sold is lost`, async (t) => {
    const inbox = await site().anInbox()
    const path = `/c/${inbox.publicId}/${MARK}?token=${MARK}`
    const headers = { authorization: `Bearer ${MARK}`, 'x-api-key': MARK, 'payment-preimage': MARK }
    const answers: { status: number; at: number; hasBody: boolean }[] = []
    let isOver = false
    const sender = async (hasBody: boolean): Promise<void> => {
      const options: Ask = hasBody ? { method: 'POST', headers, body: MARK } : { headers }
      while (!isOver) {
        const { statusCode, body } = await site().ask(path, options)
        await body.dump()
        answers.push({ status: statusCode, at: performance.now(), hasBody })
      }
    }
    const senders = [sender(true), sender(true), sender(false), sender(false)]
    const enough = (more: number, status: number): Promise<unknown> => {
      const goal = answers.length
      return until('answers', () => {
        const since = answers.slice(goal).filter((answer) => answer.status === status)
        return since.length >= more
      })
    }
    await enough(20, 204)
    await site().service.restart()
    const upAt = performance.now()
    await enough(20, 204)
    isOver = true
    await Promise.all(senders)

    const refused = answers.filter(({ status }) => status !== 204)
    for (const { status } of refused) assert.ok([502, 503, 504].includes(status), String(status))
    const last = Math.max(0, ...refused.map(({ at }) => at - upAt))
    t.diagnostic(`${name}: ${refused.length} of ${answers.length} refused, last at +${last} ms`)
    assert.ok(last < 1_000, `refused ${last} ms after the service was back`)
    const { acceptedRequestCount } = await site().mayfly.catch(inbox).status()
    const accepted = answers.length - refused.length
    assert.ok(acceptedRequestCount >= accepted, `${acceptedRequestCount} of ${accepted} stored`)
    if (name === 'caddy') {
      const waited = refused.filter(({ hasBody }) => !hasBody)
      assert.deepEqual(waited, [], 'what has no body waits for the service')
    }
  })

  test(`${name} writes no path, query or header of a request to its logs`, async () => {
    await site().service.stop()
    const { statusCode, body } = await site().ask(`/c/x/${MARK}?token=${MARK}`, {
      headers: { authorization: `Bearer ${MARK}`, 'payment-preimage': MARK, cookie: MARK },
    })
    await body.dump()
    assert.ok(statusCode >= 502, String(statusCode))
    const logs = await site().front.logs()
    assert.ok(
      !logs.includes(MARK),
      logs.split('\n').find((line) => line.includes(MARK)),
    )
    assert.ok(
      !logs.includes('catch_'),
      logs.split('\n').find((line) => line.includes('catch_')),
    )
  })

  test(`a challenge and a credential with a long invoice pass ${name}`, async (t) => {
    await site().service.stop()
    const long = `Payment request="${'a'.repeat(12 * 1024)}"`
    const standIn = await inPlaceOf(site(), (asked, answer) => {
      const { authorization } = asked.headers
      answer.writeHead(402, { 'www-authenticate': long, 'x-length': authorization?.length ?? 0 })
      answer.end()
    })
    t.after(standIn.close)
    for (const isHttp2 of [false, true]) {
      const own = site().front.client({ isHttp2 })
      const { statusCode, headers, body } = await site().ask(BUY, {
        headers: { authorization: long },
        client: own,
      })
      await body.dump()
      assert.equal(statusCode, 402)
      assert.equal(headers['www-authenticate'], long)
      assert.equal(headers['x-length'], String(long.length))
    }
  })

  test(`${name} takes no more of an answer than its reader does, so that none of it waits on a disk`, async (t) => {
    await site().service.stop()
    for (const isHttp2 of [false, true]) {
      let answered: ServerResponse | undefined
      const standIn = await inPlaceOf(site(), (_asked, answer) => {
        answered = answer
        answer.writeHead(200, { 'content-type': 'application/octet-stream' })
        answer.end(Buffer.alloc(LARGE_BYTES))
      })
      t.after(standIn.close)
      const own = site().front.client({ isHttp2 })
      const { body } = await site().ask('/any', { client: own })
      let [taken, polls] = [0, 0]
      await until('it waits for its reader, or has taken all', () => {
        const now = answered?.socket?.bytesWritten ?? 0
        polls = now === taken ? polls + 1 : 0
        taken = now
        return polls >= STILL_POLLS || answered?.writableFinished
      })
      assert.equal(answered?.writableFinished, false)
      let read = 0
      for await (const chunk of body) read += (chunk as Buffer).length
      assert.equal(read, LARGE_BYTES)
      await standIn.close()
    }
  })
})

/** More than the buffers of all sockets on the way. */
const LARGE_BYTES = 64 * 1024 * 1024
/** Nobody takes more of what has not moved for so many looks. */
const STILL_POLLS = 40

/** Answers what the proxy passes on, in place of the service. */
async function inPlaceOf(site: Site, answer: RequestListener) {
  const standIn = createServer(answer)
  await new Promise<void>((resolve) => standIn.listen(site.service.port, '127.0.0.1', resolve))
  return {
    async close(): Promise<void> {
      standIn.closeAllConnections()
      await new Promise((resolve) => standIn.close(resolve))
    },
  }
}
