import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CatchCapability } from '../../../src/client/index.ts'
import { poll, purchase, quoteOf, settlement } from '../../support/buying.ts'
import { anInbox } from '../../support/catch.ts'
import { runCommand } from '../../support/command.ts'
import { paidExtension } from '../../support/extension.ts'
import { startServer } from '../../support/server.ts'
import { query } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const order = (file: string, ...args: string[]) =>
  runCommand(['order', ...args], { MAYFLY_DATABASE_URL: `sqlite:${file}` })

test('an order that was paid and refused is delivered, and its inbox works', async (t) => {
  const server = await startServer(t)
  const { orderId } = quoteOf(await purchase(server, {}))
  const other = await order(server.file, 'deliver', orderId)
  assert.equal(other.code, 1)
  assert.match(other.err, /^\w{64} is pending: there is nothing to deliver\.$/m)
  await query(server, `update purchase_order set state = 'paid_unfulfilled', settled_by = 'stream'`)
  assert.equal((await poll(server, orderId)).status, 503)
  const repaired = await order(server.file, 'deliver', orderId)
  assert.equal(repaired.code, 0)
  assert.match(repaired.out, /^\w{64} is settled as catch_\w+ until /)
  const again = await order(server.file, 'deliver', orderId)
  assert.equal(again.code, 1)
  assert.match(again.err, /waits for its buyer.*order deliver \w{64} --print/)
  const { resource } = JSON.parse((await poll(server, orderId)).text)
  const sent = await fetch(`${server.url}/c/${resource.publicId}`, { method: 'POST', body: 'x' })
  assert.equal(sent.status, 204)
})

test('an order that was restored under an id that its buyer does not know is not said to wait for a poll', async (t) => {
  const server = await startServer(t)
  const { orderId, paymentHash } = quoteOf(await purchase(server, {}))
  await query(
    server,
    `update purchase_order set state = 'paid_unfulfilled', settled_by = 'operator', restored_at = created_at`,
  )
  const { out } = await order(server.file, 'deliver', orderId)
  assert.match(
    out,
    /^\w{64} is settled as catch_\w+ until \S+\. The buyer's credential collects it/,
  )
  assert.match(out, new RegExp(`mayfly order deliver ${paymentHash} --print$`, 'm'))
})

test('a paid order that nobody has got is printed once, as its buyer would have got it', async (t) => {
  const server = await startServer(t)
  const { orderId, bolt11, paymentHash } = quoteOf(await purchase(server, {}))
  assert.deepEqual(await order(server.file, 'deliver', paymentHash, '--print'), {
    code: 1,
    out: '',
    err: `${paymentHash} is pending: there is nothing to deliver.\n`,
  })
  const settled = settlement(server)
  await server.pay(bolt11)
  await settled
  const given = await order(server.file, 'deliver', '--print', paymentHash)
  assert.equal(given.code, 0, given.err)
  assert.match(given.err, /is delivered and sealed\. This is the only copy/)
  const { resource } = JSON.parse(given.out) as { resource: CatchCapability }
  assert.equal((await server.mayfly.catch(resource).status()).status, 'active')
  assert.deepEqual((await poll(server, orderId)).text, '{"error":"already delivered"}')
  const again = await order(server.file, 'deliver', paymentHash, '--print')
  assert.deepEqual([again.code, again.out], [1, ''])
  assert.match(again.err, /was delivered at .+, and is never delivered twice/)
  assert.match((await order(server.file, 'show', paymentHash)).out, /The operator handed out/)
  assert.equal((await order(server.file, 'show', paymentHash, '--print')).code, 2)
})

const REASON = ['--reason', 'case 17']

test('an order that was paid back is noted as such, and its buyer told', async (t) => {
  const server = await startServer(t)
  const key = 'b3c1a1de-5f0a-4f2b-8a53-0d9e8c7b6a54'
  const { orderId, paymentHash, amountSats } = quoteOf(await purchase(server, { key }))
  const early = await order(server.file, 'refund', orderId, ...REASON)
  assert.equal(early.code, 1)
  assert.match(early.err, /is pending: this store knows of no payment/)
  await query(server, `update purchase_order set state = 'paid_unfulfilled', settled_by = 'stream'`)
  assert.equal((await order(server.file, 'refund', paymentHash)).code, 2, 'without a reason')
  const half = await order(server.file, 'refund', paymentHash, ...REASON, '--product', 'catch')
  assert.deepEqual([half.code, half.err], [2, '--product goes with --plan, which is missing.\n'])
  assert.deepEqual(await order(server.file, 'refund', paymentHash, ...REASON), {
    code: 0,
    out: `${paymentHash} is recorded as refunded, ${amountSats} sats.\n`,
    err: '',
  })
  const told = { status: 404, text: '{"error":"order refunded"}' }
  for (const { status, text } of [await poll(server, orderId), await purchase(server, { key })]) {
    assert.deepEqual({ status, text }, told)
  }
  const { out } = await order(server.file, 'show', orderId)
  assert.match(out, /^state +refunded$/m)
  assert.match(out, /was paid back: case 17/)
  const again = await order(server.file, 'refund', orderId, ...REASON)
  assert.match(again.err, /was recorded as refunded at 2/)
})

test('a delivered order is refunded by a command that says so, and what it bought goes on', async (t) => {
  const server = await startServer(t)
  const { orderId, bolt11, paymentHash, amountSats } = quoteOf(await purchase(server, {}))
  await server.pay(bolt11)
  await until('the delivery', async () => (await poll(server, orderId)).status === 200)
  const { publicId } = JSON.parse((await order(server.file, 'show', bolt11, '--json')).out)
  const unmeant = await order(server.file, 'refund', bolt11, ...REASON)
  assert.equal(unmeant.code, 1)
  assert.match(unmeant.err, /its buyer has what it bought\..+ add --settled/)
  const refunded = await order(server.file, 'refund', bolt11, '--settled', ...REASON)
  assert.equal(refunded.code, 0, refunded.err)
  assert.match(refunded.out, /works until its end: mayfly takedown/)
  assert.equal((await poll(server, orderId)).text, '{"error":"order refunded"}')
  const sent = await fetch(`${server.url}/c/${publicId}`, { method: 'POST', body: 'x' })
  assert.equal(sent.status, 204)
  const sales = { MAYFLY_DATABASE_URL: `sqlite:${server.file}` }
  const { out } = await runCommand(['sales', 'export'], sales)
  assert.match(out, new RegExp(`,-${amountSats},"${paymentHash}","regtest","case 17"`))
  const capability = await order(server.file, 'refund', publicId, ...REASON)
  assert.deepEqual([capability.code, capability.out], [2, ''])
  assert.match(capability.err, /can have several orders/)
  const long = await order(server.file, 'refund', paymentHash, '--reason', 'x'.repeat(501))
  assert.equal(long.code, 2)
})

test('a wrong command, or an unknown order, is told what is right', async (t) => {
  const server = await startServer(t)
  const nobodys = 'order_0000000000000000000000'
  for (const [args, says] of [
    [[], /^Usage: mayfly order/],
    [['show'], /missing required argument 'order'/],
    [['show', 'catch_1'], /^catch_1 is neither a payment hash, nor an invoice/],
    [['show', 'lnbcrt1torn'], /not a Lightning invoice/],
    [['drop', nobodys], /unknown command 'drop'/],
    [['deliver', `catch_${'A'.repeat(22)}`], /can have several orders/],
    [['restore', 'ab'.repeat(32), '--plan', 'spark'], /required option '--product <product>'/],
  ] as const) {
    const { code, err } = await order(server.file, ...args)
    assert.match(err, says)
    assert.equal(code, 2)
  }
  for (const [name, says] of [
    [nobodys, /^There is no order with that id in this store\./],
    [`catch_${'A'.repeat(22)}`, /ask the buyer for the invoice or its payment hash/],
    ['00'.repeat(32), /If your node says that the invoice is paid, you owe it/],
  ] as const) {
    const { code, err } = await order(server.file, 'show', name)
    assert.match(err, says)
    assert.equal(code, 4)
  }
  for (const verb of [['deliver'], ['deliver', '--print'], ['refund', ...REASON]]) {
    assert.equal((await order(server.file, ...verb, nobodys)).code, 4, verb.join(' '))
  }
})

test('order show tells the story of an order by each of its names, without what a buyer keeps secret', async (t) => {
  const server = await startServer(t)
  const { orderId, bolt11, paymentHash } = quoteOf(
    await purchase(server, { key: 'the secret key' }),
  )
  await server.pay(bolt11)
  await until('the delivery', async () => (await poll(server, orderId)).status === 200)
  const byHash = await order(server.file, 'show', paymentHash)
  assert.deepEqual([byHash.code, byHash.err], [0, ''])
  assert.match(byHash.out, /^state +settled$/m)
  assert.match(byHash.out, /It was paid: the node reported it\./)
  assert.match(byHash.out, /^tell the buyer +It was paid and delivered at /m)
  const { out } = await order(server.file, 'show', bolt11, '--json')
  const told = JSON.parse(out)
  assert.deepEqual(Object.keys(told), [
    ...['state', 'product', 'planId', 'amountSats', 'network', 'paymentHash', 'orderId'],
    ...['publicId', 'extendsId', 'story', 'tellBuyer', 'todo', 'others'],
  ])
  for (const name of [orderId, told.publicId]) {
    const found = JSON.parse((await order(server.file, 'show', name, '--json')).out)
    assert.equal(found.paymentHash, paymentHash, name)
  }
  assert.equal(told.orderId, orderId)
  const [row] = await query(server, 'select seed, request_hash from purchase_order')
  const hidden = [row?.seed, row?.request_hash].map((bytes) => Buffer.from(bytes as Uint8Array))
  for (const secret of [...hidden.map((bytes) => bytes.toString('hex')), 'the secret key', bolt11])
    assert.ok(!(byHash.out + out).toUpperCase().includes(secret.toUpperCase()))
})

test('order show tells what became of extensions, by the public id of what they extend', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const { publicId } = inbox
  const extension = await paidExtension(server, inbox)
  assert.equal((await poll(server, extension.orderId)).status, 200)
  const bought = JSON.parse((await order(server.file, 'show', publicId, '--json')).out)
  assert.deepEqual(
    bought.others.map((other: Record<string, unknown>) => [other.paymentHash, other.extendsId]),
    [[extension.paymentHash, publicId]],
  )
  const { out } = await order(server.file, 'show', publicId)
  const other = `settled  extends ${publicId}  ${extension.paymentHash}`
  assert.match(out, new RegExp(`^other orders .* ${other}`, 'm'))
  const shown = (await order(server.file, 'show', extension.paymentHash)).out
  assert.match(shown, /^tell the buyer .* has extended .* there are no new ones/m)
  const { orders } = JSON.parse((await order(server.file, 'list', '--json')).out)
  const extended = orders.map((listed: Record<string, unknown>) => listed.extendsId)
  assert.deepEqual(extended.toSorted(), [publicId, null])
})

test('order list shows the newest orders of a state, and says when there are more', async (t) => {
  const server = await startServer(t)
  assert.equal((await order(server.file, 'list')).out, 'There are no such orders.\n')
  const first = quoteOf(await purchase(server, {}))
  server.clock.advance(1_000)
  const second = quoteOf(await purchase(server, {}))
  const listed = await order(server.file, 'list', '--state', 'pending')
  const lines = listed.out.trim().split('\n')
  assert.equal(lines.length, 3)
  assert.match(
    lines[0] ?? '',
    /^OPENED +STATE +PRODUCT +PLAN +SATS +PAYMENT HASH +ORDER +PUBLIC ID$/,
  )
  for (const [i, { paymentHash, orderId }] of [second, first].entries())
    assert.match(lines[i + 1] ?? '', new RegExp(`${paymentHash} +${orderId} +-$`))
  const one = await order(server.file, 'list', '--limit', '1', '--json')
  const { orders, hasMore } = JSON.parse(one.out)
  assert.deepEqual([orders.length, orders[0].paymentHash, hasMore], [1, second.paymentHash, true])
  assert.deepEqual([orders[0].orderId, orders[0].publicId], [second.orderId, null])
  assert.match(one.err, /--limit shows more/)
  assert.equal((await order(server.file, 'list', '--since', '1m', '--product', 'pulse')).code, 0)
  for (const args of [
    ['--state', 'paid'],
    ['--product', 'gate'],
    ['--since', 'today'],
    ['--limit', '0'],
  ]) {
    assert.equal((await order(server.file, 'list', ...args)).code, 2, args.join(' '))
  }
})
