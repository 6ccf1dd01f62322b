/** A capability is its owner's alone: nothing that is done with one changes a row of another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WhisperCapability } from '../../src/client/index.ts'
import { anInbox } from '../support/catch.ts'
import { aMonitor } from '../support/pulse.ts'
import { aReceiver } from '../support/receiver.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { aWhisper, read } from '../support/whisper.ts'

const RECEIPT = { headers: { 'x-whisper-receipt': 'on' } }

type Whole = Awaited<ReturnType<typeof aWhole>>

test('nothing that an owner does with an inbox, a monitor or a secret changes those of another', async (t) => {
  const { host, url: receiver } = await aReceiver(t)
  const server = await startServer(t, { MAYFLY_ALLOWED_HOSTS: host })
  // The others are the first and the last of the store.
  const first = await aWhole(server, receiver)
  const own = await aWhole(server, receiver)
  const last = await aWhole(server, receiver)
  const seen = async () => [await seenOf(server, first), await seenOf(server, last)]
  const before = await seen()
  for (const { rows } of before) {
    for (const [table, some] of Object.entries(rows)) assert.ok(some.length > 0, table)
  }
  await useUp(server, own, receiver)
  assert.deepEqual(await seen(), before)
  for (const { inbox, monitor, secret } of [first, last]) {
    await server.mayfly.pulse(monitor).ping()
    assert.equal((await post(server, inbox, 'four')).status, 201)
    assert.equal((await read(server, secret)).status, 425)
  }
})

/** One of each, of which every table has something. */
async function aWhole(server: TestServer, receiver: string) {
  const [inbox, monitor] = [await anInbox(server), await aMonitor(server, 'standard')]
  const [ofInbox, ofMonitor] = [server.mayfly.catch(inbox), server.mayfly.pulse(monitor)]
  await ofInbox.setResponse({ status: 201, body: 'taken' })
  for (const body of ['one', 'two']) await post(server, inbox, body)
  await ofMonitor.ping()
  await ofMonitor.setAlerts({ destinations: [{ url: receiver }] })
  const { switchId } = await ofMonitor.makeSwitch()
  const secret = await aWhisper(server, {
    headers: { ...RECEIPT.headers, 'x-whisper-reveal-when': switchId },
  })
  await ofMonitor.ping()
  return { inbox, monitor, secret, open: await aWhisper(server, RECEIPT) }
}

/** Everything that an owner can do, up to the end of each. */
async function useUp(
  server: TestServer,
  { inbox, monitor, secret, open }: Whole,
  receiver: string,
) {
  const { mayfly } = server
  const onInvoice = ({ bolt11 }: { bolt11: string }) => server.pay(bolt11)
  const ofInbox = mayfly.catch(inbox)
  await ofInbox.setResponse({ status: 202, body: 'mine' })
  await ofInbox.deleteResponse()
  await post(server, inbox, 'three')
  const { events } = await ofInbox.page()
  await ofInbox.deleteEvent(events.at(-1)?.id ?? '')
  await mayfly.extend(inbox, { planId: 'spark', onInvoice })
  await ofInbox.rotateToken('ingest')
  const { token } = await ofInbox.rotateToken('owner')
  await mayfly.catch({ ...inbox, ownerToken: token }).destroy()

  const ofMonitor = mayfly.pulse(monitor)
  await ofMonitor.fail()
  await ofMonitor.ping()
  await ofMonitor.update({ name: 'mine', publicStatusEnabled: true, graceSeconds: 120 })
  await ofMonitor.setSchedule({ cron: '* * * * *', timeZone: 'UTC', graceSeconds: 600 })
  await ofMonitor.deleteSchedule()
  await ofMonitor.setAlerts({ destinations: [{ url: `${receiver}/other` }] })
  await ofMonitor.deleteAlerts()
  await mayfly.extend(monitor, { planId: 'standard', onInvoice })
  await ofMonitor.retireSwitch()
  await ofMonitor.rotateToken('ping')
  const next = await ofMonitor.rotateToken('owner')
  await mayfly.pulse({ ...monitor, ownerToken: next.token }).destroy()

  assert.equal((await read(server, open)).status, 200)
  await mayfly.whisperReceipt(secret as Required<WhisperCapability>).destroy()
}

function post({ url }: TestServer, { publicId, ingestToken: token }: Whole['inbox'], body: string) {
  const headers = { authorization: `Bearer ${token}` }
  return fetch(`${url}/c/${publicId}`, { method: 'POST', headers, body })
}

/** What the store has of them, and what their owner sees. Events stand in tables that are sorted now and then. */
async function seenOf(server: TestServer, { inbox, monitor, secret, open }: Whole) {
  const { mayfly } = server
  const rowsOf = (table: string, column: string, ...ids: unknown[]) =>
    query(
      server,
      `select * from ${table} where ${column} in (${ids.map((_, i) => `$${i + 1}`)}) order by 1, 2`,
      ...(ids as string[]),
    )
  const ids = [inbox, monitor, secret, open].map(({ publicId }) => publicId)
  const orders = await rowsOf('purchase_order', 'public_id', ...ids)
  const inboxes = await rowsOf('catch_inbox', 'public_id', inbox.publicId)
  return {
    rows: {
      orders,
      inboxes,
      uses: await rowsOf('catch_inbox_use', 'number', inboxes[0]?.number),
      whispers: await rowsOf('whisper', 'public_id', ...ids),
      ciphertexts: await rowsOf('whisper_ciphertext', 'order_id', ...orders.map((o) => o.order_id)),
      receipts: await rowsOf('whisper_receipt', 'public_id', ...ids),
      switches: await rowsOf('reveal_switch', 'monitor_id', monitor.publicId),
      bindings: await rowsOf('reveal_binding', 'public_id', secret.publicId),
      monitors: await rowsOf('pulse_monitor', 'public_id', monitor.publicId),
      pings: await rowsOf('pulse_ping', 'public_id', monitor.publicId),
    },
    events: await mayfly.catch(inbox).page(),
    alerts: (await mayfly.pulse(monitor).alerts()).destinations,
  }
}
