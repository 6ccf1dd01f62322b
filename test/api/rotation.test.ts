/** Replacing the tokens of inboxes and monitors over HTTP: what stops working when. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { NOT_FOUND } from '../support/answer.ts'
import { anInbox, send } from '../support/catch.ts'
import { aMonitor, assertNowhere, DONE, ping } from '../support/pulse.ts'
import { shareServer } from '../support/shared-server.ts'
import { mayflyError } from '../support/whisper.ts'

suite('another token', () => {
  const theServer = shareServer()

  test('an owner token is replaced with the first use of the new one, and a lost answer locks nobody out', async () => {
    const server = await theServer()
    const { mayfly } = server
    const bought = [await anInbox(server), await aMonitor(server)] as const
    for (const one of bought) {
      const open = (ownerToken: string) =>
        one.product === 'catch'
          ? mayfly.catch({ ...one, ownerToken })
          : mayfly.pulse({ ...one, ownerToken })
      const owner = open(one.ownerToken)
      const { token: lost } = await owner.rotateToken('owner')
      const { kind, token } = await owner.rotateToken('owner')
      assert.equal(kind, 'owner')
      assert.match(token, new RegExp(`^${one.product}_owner_[0-9A-Za-z]{49}$`))
      await owner.status()
      const refused = mayflyError('not found', 404)
      await assert.rejects(open(lost).status(), refused)
      await Promise.all(Array.from({ length: 8 }, () => open(token).status()))
      await assert.rejects(owner.status(), refused)
      await assert.rejects(open(lost).status(), refused)
      await assert.rejects(owner.rotateToken('owner'), refused)
      await open(token).rotateToken('owner')
      await open(token).status()
      await assertNowhere(server, [token, lost])
    }
  })

  test('a stream or wait that was begun with an owner token ends when that is replaced, and shows nothing more', async () => {
    const server = await theServer()
    const { mayfly } = server
    const [inbox, monitor] = [await anInbox(server), await aMonitor(server)]
    const [owner, keeper] = [mayfly.catch(inbox), mayfly.pulse(monitor)]
    const [captures, news] = [owner.stream({ after: 0 }), keeper.stream()]
    await send(server, inbox, {})
    await Promise.all([captures.next(), news.next()])
    const waits = Promise.all([
      assert.rejects(owner.page({ after: 1, wait: 20 }), mayflyError('unauthorized', 401)),
      assert.rejects(keeper.awaitState({ seconds: 20 }), mayflyError('not found', 404)),
    ])
    const { token } = await owner.rotateToken('owner')
    await mayfly.catch({ ...inbox, ownerToken: token }).status()
    const other = await keeper.rotateToken('owner')
    await mayfly.pulse({ ...monitor, ownerToken: other.token }).status()
    await Promise.all([send(server, inbox, {}), ping(server, monitor)])
    await waits
    // Both streams have connected again by then, with the token that they had.
    await assert.rejects(captures.next(), mayflyError('not found', 404))
    await assert.rejects(news.next(), mayflyError('not found', 404))
  })

  test('a new ingest token is the only one that marks a request as authenticated', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const owner = server.mayfly.catch(inbox)
    const sendWith = (shown: string) =>
      send(server, inbox, { headers: { authorization: `Bearer ${shown}` } })
    await sendWith(inbox.ingestToken)
    const { token } = await owner.rotateToken('ingest')
    for (const shown of [inbox.ingestToken, token]) await sendWith(shown)
    const { events } = await owner.page({ after: 0 })
    assert.deepEqual(
      events.map(({ access }) => access),
      ['authenticated', 'public', 'authenticated'],
    )
  })

  test('a new ping token pings at once, and the ones before do nothing more, also where an answer was lost', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const owner = server.mayfly.pulse(monitor)
    assert.deepEqual(await ping(server, monitor), DONE)
    const { token: lost } = await owner.rotateToken('ping')
    const { token: pingToken } = await owner.rotateToken('ping')
    assert.match(pingToken, /^pulse_ping_[0-9A-Za-z]{49}$/)
    for (const ended of [monitor.pingToken, lost]) {
      assert.deepEqual(await ping(server, { ...monitor, pingToken: ended }), NOT_FOUND)
      const job = server.mayfly.pulse({ ...monitor, pingToken: ended })
      await assert.rejects(job.start(), mayflyError('not found', 404))
    }
    assert.deepEqual(await ping(server, { ...monitor, pingToken }), DONE)
    const job = server.mayfly.pulse({ publicId: monitor.publicId, pingToken })
    await job.start()
    await job.exit(0)
    assert.equal((await owner.status()).acceptedHeartbeatCount, 4)
    await assertNowhere(server, [pingToken])
  })
})
