import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { answerOf, NOT_FOUND } from '../support/answer.ts'
import { aMonitor, owner, shared } from '../support/pulse.ts'
import { shareServer } from '../support/shared-server.ts'

suite('a shared status', () => {
  const theServer = shareServer()

  test('the shared status has four fields and tells nothing of the monitor', async () => {
    const server = await theServer()
    const capability = await aMonitor(server)
    const monitor = server.mayfly.pulse(capability)
    const { publicStatusId } = await monitor.status()
    assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND, 'off at first')
    await monitor.update({ publicStatusEnabled: true, name: 'job', description: 'runs at night' })
    const response = await fetch(`${server.url}/api/pulse/public/${publicStatusId}`)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('access-control-allow-origin'), '*')
    assert.equal(
      await response.text(),
      '{"name":"job","description":"runs at night","state":"waiting","lastPingAt":null}',
    )
    await monitor.ping()
    const { lastPingAt } = await monitor.status()
    assert.deepEqual(await server.mayfly.pulsePublicStatus(publicStatusId), {
      name: 'job',
      description: 'runs at night',
      state: 'operational',
      lastPingAt,
    })
    await monitor.update({ publicStatusEnabled: false })
    assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND)
    assert.deepEqual(await shared(server, `${publicStatusId}/badge.svg`), NOT_FOUND)
  })

  test('a status that is shared again has another address, one however many stop it at once', async () => {
    const server = await theServer()
    const monitor = server.mayfly.pulse(await aMonitor(server))
    const { publicStatusId: first } = await monitor.update({ publicStatusEnabled: true })
    const kept = await monitor.update({ publicStatusEnabled: true, name: 'x' })
    assert.equal(kept.publicStatusId, first)
    const stop = () => monitor.update({ publicStatusEnabled: false })
    const stopped = await Promise.all([stop(), stop()])
    const { publicStatusId: second } = await monitor.update({ publicStatusEnabled: true })
    for (const { publicStatusId } of stopped) assert.equal(publicStatusId, second)
    assert.equal((await server.mayfly.pulsePublicStatus(second)).state, 'waiting')
    assert.deepEqual(await shared(server, first), NOT_FOUND)
    assert.deepEqual(await shared(server, `${first}/badge.svg`), NOT_FOUND)
  })

  test('the id that is shared opens nothing else, and no other id opens what is shared', async () => {
    const server = await theServer()
    const capability = await aMonitor(server)
    const { publicId, ownerToken } = capability
    const { publicStatusId } = await server.mayfly
      .pulse(capability)
      .update({ publicStatusEnabled: true })
    assert.ok(!JSON.stringify(capability).includes(publicStatusId.slice('pulse_status_'.length)))
    for (const id of [
      publicId,
      publicStatusId.replace('pulse_status_', 'pulse_'),
      publicId.replace('pulse_', 'pulse_status_'),
      `${publicStatusId}x`,
      publicStatusId.slice(0, -1),
      `pulse_status_${'-'.repeat(22)}`,
      'x',
      "' or 1=1 --",
      'y'.repeat(500),
    ]) {
      assert.deepEqual(await shared(server, encodeURIComponent(id)), NOT_FOUND, id)
      assert.deepEqual(await shared(server, `${encodeURIComponent(id)}/badge.svg`), NOT_FOUND, id)
    }
    for (const method of ['GET', 'DELETE']) {
      const answer = await owner(server, { publicId: publicStatusId, ownerToken }, { method })
      assert.deepEqual(answer, NOT_FOUND, method)
    }
  })

  test('the badge is a picture that runs nothing, for a short time', async () => {
    const server = await theServer()
    const monitor = server.mayfly.pulse(await aMonitor(server))
    const name = `<script>alert("1")</script>&'`
    const description = 'not on the badge'
    const { publicStatusId } = await monitor.update({
      name,
      description,
      publicStatusEnabled: true,
    })
    const response = await fetch(`${server.url}/api/pulse/public/${publicStatusId}/badge.svg`)
    assert.equal(response.status, 200)
    const { headers } = response
    assert.equal(headers.get('content-type'), 'image/svg+xml; charset=utf-8')
    assert.equal(headers.get('cache-control'), 'public, max-age=30')
    assert.equal(
      headers.get('content-security-policy'),
      "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    )
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    const document = await response.text()
    assert.match(document, /^<svg /)
    assert.match(document, />&lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt;&amp;&#39;</)
    assert.match(document, />waiting</)
    assert.ok(!document.includes('<script') && !document.includes(description))
    const gone = await fetch(`${server.url}/api/pulse/public/pulse_status_x/badge.svg`)
    assert.equal(gone.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(gone.headers.get('cache-control'), 'no-store')
    assert.deepEqual(await answerOf(gone), NOT_FOUND)
  })
})
