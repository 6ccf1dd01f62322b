/** `mayfly order deliver` of extensions that were paid and failed, beside a running service. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poll, quoteOf } from '../../support/buying.ts'
import { runCommand } from '../../support/command.ts'
import { assertExtended, EXTENDABLE, endIn, extend, type Held } from '../../support/extension.ts'
import { aMonitor } from '../../support/pulse.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { query } from '../../support/store.ts'

const order = (server: TestServer, ...args: string[]) =>
  runCommand(['order', ...args], { MAYFLY_DATABASE_URL: `sqlite:${server.file}` })

/** An extension that is paid, and whose plan cannot be added until it is mended. */
async function aFailedExtension(server: TestServer, held: Held) {
  const quote = quoteOf(await extend(server, held))
  const where = 'where order_id = $1'
  const [row] = await query(server, `select plan from purchase_order ${where}`, quote.orderId)
  await query(server, `update purchase_order set plan = '{}' ${where}`, quote.orderId)
  const preimage = await server.pay(quote.bolt11)
  const proof = { 'payment-preimage': preimage }
  assert.equal((await poll(server, quote.orderId, proof)).status, 503)
  const mend = () =>
    query(server, `update purchase_order set plan = $2 ${where}`, quote.orderId, String(row?.plan))
  return { ...quote, proof, mend }
}

for (const { name, buy, limits } of EXTENDABLE) {
  test(`a paid extension of ${name} that failed is delivered once its cause is mended, and adds the plan once`, async (t) => {
    const server = await startServer(t)
    const held = await buy(server)
    const failed = await aFailedExtension(server, held)
    await assertExtended(server, { held, limits, times: 0 })
    const refused = await order(server, 'deliver', failed.paymentHash)
    assert.equal(refused.code, 1, refused.out)

    await failed.mend()
    const repaired = await order(server, 'deliver', failed.paymentHash)
    assert.deepEqual([repaired.code, repaired.err], [0, ''])
    const end = endIn(await poll(server, failed.orderId, failed.proof))
    assert.equal(
      repaired.out,
      `${failed.paymentHash} is settled: ${held.publicId} is extended until ${end}. The buyer's next poll says so.\n`,
    )
    await assertExtended(server, { held, limits, times: 1 })
    assert.equal((await order(server, 'deliver', failed.paymentHash)).code, 1)
    await assertExtended(server, { held, limits, times: 1 })
  })
}

test('who follows a monitor is told the new end soon after the operator has delivered its extension', async (t) => {
  const server = await startServer(t)
  const monitor = await aMonitor(server)
  const failed = await aFailedExtension(server, monitor)
  await failed.mend()
  const signal = AbortSignal.timeout(60_000)
  const stream = server.mayfly.pulse(monitor).stream({ signal })
  t.after(() => stream.return(''))
  await stream.next()
  await order(server, 'deliver', failed.paymentHash)
  const { value } = await stream.next()
  assert.ok(typeof value === 'object')
  assert.equal(value.status.expiresAt, endIn(await poll(server, failed.orderId, failed.proof)))
})

test('an extension that the operator delivers is extended, and what is printed has no token', async (t) => {
  const server = await startServer(t)
  const monitor = await aMonitor(server)
  const failed = await aFailedExtension(server, monitor)
  await failed.mend()
  const given = await order(server, 'deliver', failed.paymentHash, '--print')
  assert.equal(given.code, 0, given.err)
  const end = endIn({ status: 200, text: given.out })
  assert.ok(Date.parse(end) > Date.parse(monitor.expiresAt))
  assert.equal(
    given.err,
    `${failed.paymentHash} is delivered and sealed: ${monitor.publicId} is extended. This has no secret.\n`,
  )
})
