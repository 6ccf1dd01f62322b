import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import type { SharedWhisper } from '../../src/client/index.ts'
import { newId } from '../../src/lib/ids.ts'
import { alerts, put } from '../support/alerts.ts'
import { aMonitor, live, ping } from '../support/pulse.ts'
import { aReceiver } from '../support/receiver.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { suspendAt } from '../support/takedown.ts'
import { until } from '../support/until.ts'
import {
  iso,
  openWhisperOrder,
  purchaseWhisper,
  REUSED,
  read,
  refusal,
  short,
} from '../support/whisper.ts'
import { aSwitch, bind, stateOf } from './reveal-switch.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
/** A switch opens a minute after its monitor is late. */
const SHORT_WAIT = { MAYFLY_SWITCH_WAIT_SECONDS: '60' }

/** A look makes one step: what is due after it is looked at ten seconds later. */
const opens = (server: TestServer, sent: SharedWhisper) =>
  until('the secret opens', async () => {
    if ((await stateOf(server, sent)) === 'open') return true
    await live(server, 10 * SECOND)
    return false
  })

test('a secret opens when the pings of its monitor stop, and only then, also after a restart', async (t) => {
  const server = await startServer(t, SHORT_WAIT)
  const { monitor, sent } = await aSwitch(server)
  assert.equal((await read(server, sent)).status, 425)
  for (let minutes = 0; minutes < 5; minutes++) {
    await live(server, MINUTE)
    await ping(server, monitor)
  }
  assert.equal(await stateOf(server, sent), 'armed')
  assert.equal((await read(server, sent)).status, 425)
  await server.restart()
  await live(server, 4 * MINUTE)
  await opens(server, sent)
  assert.equal((await read(server, sent)).status, 200)
  await ping(server, monitor)
  await server.mayfly.pulse(monitor).destroy()
  assert.equal(await stateOf(server, sent), 'open')
  assert.equal((await read(server, sent)).status, 200)
})

test('an alert of lateness says when the switch opens only to a destination whose owner asked for it', async (t) => {
  const [receiver, other] = [await aReceiver(t), await aReceiver(t)]
  const server = await startServer(t, {
    ...SHORT_WAIT,
    MAYFLY_ALLOWED_HOSTS: `${receiver.host},${other.host}`,
  })
  const { monitor } = await aSwitch(server)
  await put(server, monitor, [{ url: receiver.url, opensAt: true }, { url: other.url }])
  const { body } = await alerts(server, monitor)
  assert.deepEqual(
    body.destinations.map(({ opensAt }: { opensAt?: boolean }) => opensAt),
    [true, undefined],
  )
  await ping(server, monitor)
  await live(server, 3 * MINUTE)
  const [[late], [plain]] = await Promise.all([
    receiver.until('pulse.late'),
    other.until('pulse.late'),
  ])
  assert.ok(late && plain)
  const { since, opensAt } = late.body.data as { since: string; opensAt: string }
  assert.equal(Date.parse(opensAt) - Date.parse(since), MINUTE)
  assert.ok(!JSON.stringify(plain.body).includes('opens'))
})

test('an outage of the service never opens a secret, and neither does a switch that no ping has armed', async (t) => {
  const server = await startServer(t, SHORT_WAIT)
  const { monitor, sent } = await aSwitch(server)
  const later = await bind(server, monitor)
  await live(server, MINUTE)
  await ping(server, monitor)
  const unarmed = await bind(server, monitor)
  server.clock.advance(3 * 60 * MINUTE)
  await live(server, MINUTE)
  for (const one of [sent, later]) assert.equal(await stateOf(server, one), 'armed')
  await live(server, 4 * MINUTE)
  for (const one of [sent, later]) {
    await opens(server, one)
  }
  assert.equal(await stateOf(server, unarmed), 'waiting')
  assert.equal((await read(server, unarmed)).status, 425)
})

test('after an outage of the service a switch is sold for as long as its owner sees the monitor in time', async (t) => {
  const server = await startServer(t, SHORT_WAIT)
  const { monitor } = await aSwitch(server)
  const owner = server.mayfly.pulse(monitor)
  const { switchId } = await owner.makeSwitch()
  const asked = () => purchaseWhisper(server, { headers: { 'x-whisper-reveal-when': switchId } })
  server.clock.advance(20 * MINUTE)
  assert.equal((await owner.status()).state, 'operational')
  assert.equal((await asked()).status, 402)
  await live(server, 3 * MINUTE)
  assert.equal((await owner.status()).state, 'late')
  assert.deepEqual(short(await asked()), refusal('invalid switch'))
})

suite('a switch', () => {
  const theServer = shareServer()

  test('until it opens, a read says the same for every monitor and every cause, and spends nothing', async () => {
    const server = await theServer()
    const armed = await aSwitch(server)
    await server.mayfly.pulse(armed.monitor).ping()
    const waiting = await aSwitch(server)
    const dead = await aSwitch(server)
    await server.mayfly.pulse(dead.monitor).destroy()
    assert.equal(await stateOf(server, dead.sent), 'dead')
    const answers = await Promise.all(
      [armed, waiting, dead].map(async ({ sent }) => {
        const { status, headers, text } = await read(server, sent)
        return { status, retryAfter: headers['retry-after'], text }
      }),
    )
    for (const { status, retryAfter, text } of answers) {
      assert.deepEqual([status, retryAfter], [425, '60'])
      const { revealAt, ...rest } = JSON.parse(text) as { revealAt: string }
      assert.deepEqual(rest, { error: 'not revealed' })
      assert.match(revealAt, /:00\.000Z$/)
      const away = Date.parse(revealAt) - server.now()
      assert.ok(away > MINUTE - 10 * SECOND && away <= 2 * MINUTE, revealAt)
    }
    assert.equal((await server.mayfly.whisperReceipt(armed.sent).status()).readsSpent, 0)
  })

  test('a reveal time that is further away is shown with it, and the wait stays a minute', async () => {
    const server = await theServer()
    const { monitor } = await aSwitch(server)
    const revealAt = iso(server, 60 * MINUTE)
    const sent = await bind(server, monitor, { revealAt: new Date(revealAt) })
    const { status, headers, text } = await read(server, sent)
    assert.deepEqual([status, headers['retry-after']], [425, '60'])
    assert.deepEqual(JSON.parse(text), { error: 'not revealed', revealAt })
  })

  test('a switch that could not work is refused before there is an invoice, in the same words for every cause', async () => {
    const server = await theServer()
    const unpinged = await aMonitor(server, 'standard')
    const short_ = await aMonitor(server, 'spark')
    await ping(server, short_)
    const destroyed = await aSwitch(server)
    await server.mayfly.pulse(destroyed.monitor).destroy()
    const retired = await aSwitch(server)
    await server.mayfly.pulse(retired.monitor).retireSwitch()
    const suspended = await aSwitch(server)
    await suspendAt(server, suspended.monitor.publicId)
    for (const switchId of [
      newId('pulse_switch'),
      unpinged.publicId,
      'x',
      (await server.mayfly.pulse(unpinged).makeSwitch()).switchId,
      (await server.mayfly.pulse(short_).makeSwitch()).switchId,
      destroyed.switchId,
      retired.switchId,
      suspended.switchId,
    ]) {
      const headers = { 'x-whisper-reveal-when': switchId }
      const answer = await purchaseWhisper(server, { headers })
      assert.deepEqual(short(answer), refusal('invalid switch'), switchId)
    }
  })

  test('the switch belongs to the identity of the order, and a repeat does not ask for its monitor again', async () => {
    const server = await theServer()
    const { monitor, switchId } = await aSwitch(server)
    const headers = { 'x-whisper-reveal-when': switchId }
    const key = randomUUID()
    const { bolt11 } = await openWhisperOrder(server, { key, headers })
    assert.deepEqual(short(await purchaseWhisper(server, { key })), REUSED)
    const receipt = { 'x-whisper-receipt': 'on' }
    assert.deepEqual(short(await purchaseWhisper(server, { key, headers: receipt })), REUSED)
    await server.mayfly.pulse(monitor).retireSwitch()
    assert.equal((await purchaseWhisper(server, { key, headers })).status, 402)
    await server.pay(bolt11)
    const paid = await until('it settles', async () => {
      const answer = await purchaseWhisper(server, { key, headers })
      return answer.status === 200 && answer
    })
    const { resource } = JSON.parse(paid.text) as { resource: SharedWhisper }
    assert.equal(await stateOf(server, resource), 'waiting')
  })
})
