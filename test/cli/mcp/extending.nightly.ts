/**
 * `extend` of `mayfly mcp`: however often it is asked, an end is moved and paid once. It pays as a purchase does, of
 * which money.test.ts tells the ceilings, kills and cancelled calls.
 */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { openPurchases } from '../../../src/cli/vault/purchases.ts'
import { containsToken } from '../../../src/lib/ids.ts'
import { commandLine, WITH_WALLET } from '../../support/command-line.ts'
import { SPARK_MS } from '../../support/extension.ts'
import type { After } from '../../support/folder.ts'
import { aHost, type ToolResult } from '../../support/mcp-host.ts'
import { paidInvoices, spentSats } from '../../support/mcp-money.ts'
import { startServer } from '../../support/server.ts'
import { between } from '../../support/serving.ts'
import { query } from '../../support/store.ts'
import { until } from '../../support/until.ts'
import { invoiceOf } from '../../support/user.ts'
import { putSaved, savedText } from '../../support/vault.ts'

const wallet = WITH_WALLET.environment

/** A host that has bought an inbox or a monitor as `mine`. */
async function aBuyer(t: After, tool = 'buy_inbox', options: Parameters<typeof aHost>[1] = {}) {
  const one = await aHost(t, options)
  const bought = await one.host.call(tool, { planId: 'spark', name: 'mine' })
  const { expiresAt } = (bought.value.bought ?? {}) as { expiresAt: string }
  assert.ok(expiresAt, bought.text)
  return { ...one, expiresAt, given: { name: 'mine', expiresAt } }
}

const later = (expiresAt: string, times = 1): string =>
  new Date(Date.parse(expiresAt) + times * SPARK_MS).toISOString()

const endOf = ({ value, text }: ToolResult): string => {
  assert.equal(value.state, 'settled', text)
  return (value.extended as { expiresAt: string }).expiresAt
}

const savedAs = (home: string, name: string) => JSON.parse(savedText(join(home, 'mayfly'), name))

test('twenty calls at once extend what was bought and pay once, and the next end is another extension', async (t) => {
  const { server, home, host, expiresAt, given } = await aBuyer(t)
  const results = await Promise.all(Array.from({ length: 20 }, () => host.call('extend', given)))
  assert.deepEqual([...new Set(results.map(endOf))], [later(expiresAt)])
  assert.equal(endOf(await host.call('extend', given)), later(expiresAt))
  assert.equal(await paidInvoices(server), 2)
  assert.equal(spentSats(home), 200)
  assert.equal(savedAs(home, 'mine').expiresAt, later(expiresAt))
  assert.deepEqual(openPurchases({ folder: join(home, 'mayfly') }), [])
  const again = { ...given, expiresAt: later(expiresAt) }
  assert.equal(endOf(await host.call('extend', again)), later(expiresAt, 2))
  assert.equal(await paidInvoices(server), 3)
})

test('the plan that the person agrees to is the one that is paid, whatever the saved file says', async (t) => {
  const { server, home, host, expiresAt, given } = await aBuyer(t)
  const folder = join(home, 'mayfly')
  putSaved(folder, 'mine', JSON.stringify({ ...savedAs(home, 'mine'), planId: 'standard' }))
  assert.equal(endOf(await host.call('extend', given)), later(expiresAt))
  assert.equal(await paidInvoices(server), 2)
})

describe('what is not extended', () => {
  test('a wrong end, a whisper, an unknown name and what has ended are refused, and nothing is paid', async (t) => {
    const { server, host, given } = await aBuyer(t)
    const wrong = await host.call('extend', { ...given, expiresAt: later(given.expiresAt) })
    assert.match(wrong.text, new RegExp(`mine ends at ${given.expiresAt}.*Nothing was paid`))
    await host.call('send_whisper', { planId: 'spark', name: 'word', text: 'x' })
    const whisper = await host.call('extend', { ...given, name: 'word' })
    assert.match(whisper.text, /word is a whisper, and this tool takes an inbox or a monitor/)
    assert.match((await host.call('extend', { ...given, name: 'none' })).text, /Nothing is saved/)
    for (const expiresAt of ['tomorrow', '', 'x'.repeat(100)]) {
      assert.equal((await host.call('extend', { ...given, expiresAt })).isError, true)
    }
    server.clock.advance(SPARK_MS)
    const ended = await host.call('extend', given)
    assert.match(ended.text, /It has ended, is used up or suspended.*No invoice was made/)
    assert.equal(await paidInvoices(server), 2)
  })

  test('an end that was moved from elsewhere is answered and saved, and nothing is paid', async (t) => {
    const { server, home, host, expiresAt, given } = await aBuyer(t)
    const cli = await commandLine(t, server.url)
    const environment = { ...wallet, XDG_DATA_HOME: home }
    const old = savedText(join(home, 'mayfly'), 'mine')
    await cli.json(['extend', 'mine'], { environment })
    // As on another machine, which does not know.
    putSaved(join(home, 'mayfly'), 'mine', old)
    assert.equal(endOf(await host.call('extend', given)), later(expiresAt))
    assert.equal(savedAs(home, 'mine').expiresAt, later(expiresAt))
    assert.equal(await paidInvoices(server), 2)
  })
})

describe('an interrupted extension', () => {
  test('a call that looked before another process paid pays nothing after it', async (t) => {
    const server = await startServer(t)
    const catalog = await (await fetch(`${server.url}/api/catalog`)).text()
    let held: ServerResponse | null = null
    let isBought = false
    const url = await between(t, server.url, (path, response) => {
      if (!isBought || held !== null || path !== '/api/catalog') return false
      held = response
      return true
    })
    const service = { ...server, url }
    const { home, host, expiresAt, given } = await aBuyer(t, 'buy_inbox', { server: service })
    const { host: other } = await aHost(t, { server: service, home })
    isBought = true
    const slow = host.call('extend', given)
    const waiting = await until('the first call asks for the price', () => held)
    assert.equal(endOf(await other.call('extend', given)), later(expiresAt))
    waiting.writeHead(200, { 'content-type': 'application/json' }).end(catalog)
    assert.equal(endOf(await slow), later(expiresAt))
    assert.equal(await paidInvoices(server), 2)
  })

  test('what ended while its extension was paid is sold anew, and saved beside it', async (t) => {
    const server = await startServer(t)
    const held = Promise.withResolvers<ServerResponse>()
    let isBought = false
    const url = await between(t, server.url, (path, response) => {
      if (!isBought || path !== '/simulator/pay') return false
      held.resolve(response)
      return true
    })
    const service = { ...server, url }
    const { home, host, given } = await aBuyer(t, 'buy_monitor', { server: service })
    isBought = true
    const extended = host.call('extend', given)
    const payment = await held.promise
    await server.mayfly.pulse(savedAs(home, 'mine')).destroy()
    const unpaid = 'select bolt11 from purchase_order where extends_id is not null'
    const [order] = await query(server, unpaid)
    const paid = { preimage: await server.pay(String(order?.bolt11)), paymentHash: '' }
    payment.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(paid))
    const { value, text } = await extended
    assert.equal(value.state, 'settled', text)
    assert.equal(value.name, 'mine-2')
    assert.match(String(value.next), /^mine had ended before it was paid, so a new one was sold/)
    const { publicId } = value.bought as { publicId: string }
    assert.equal(savedAs(home, 'mine-2').publicId, publicId)
    assert.equal((await host.call('ping', { name: 'mine-2' })).text, 'Recorded.')
    assert.equal(await paidInvoices(server), 2)
    assert.equal(containsToken(host.transcript()), false)
  })
})

test('without a wallet the user pays the invoice, and check_order or the same call collects it', async (t) => {
  const { server, home, host } = await aHost(t, { environment: {} })
  const cli = await commandLine(t, server.url)
  const environment = { ...wallet, XDG_DATA_HOME: home }
  const { expiresAt } = await cli.json(['buy', 'catch', '--name', 'mine'], { environment })
  const collect = {
    check_order: () => host.call('check_order', { name: 'mine' }),
    extend: (end: string) => host.call('extend', { name: 'mine', expiresAt: end }),
  }
  let end = String(expiresAt)
  for (const collected of [collect.check_order, collect.extend]) {
    const offer = await collect.extend(end)
    const { bolt11 } = offer.value.quote as { bolt11: string }
    const repeated = await collect.extend(end)
    assert.equal((repeated.value.quote as { bolt11: string }).bolt11, bolt11)
    assert.equal((await collect.check_order()).value.state, 'payment required')
    await server.pay(bolt11)
    assert.equal(endOf(await collected(end)), later(end))
    end = later(end)
  }
  assert.equal(await paidInvoices(server), 3)
  assert.equal(spentSats(home), 100)
  assert.equal((await collect.check_order()).value.extended, undefined)
})

test('a token that was replaced while an extension waited for its payment stays saved', async (t) => {
  const { server, home, host, expiresAt, given } = await aBuyer(t, 'buy_monitor')
  const cli = await commandLine(t, server.url)
  const waiting = cli.start(['extend', 'mine'], { environment: { XDG_DATA_HOME: home } })
  const bolt11 = await invoiceOf(waiting)
  await cli.json(['pulse', 'rotate', 'mine'], { environment: { XDG_DATA_HOME: home } })
  const { pingToken } = savedAs(home, 'mine')
  await server.pay(bolt11)
  assert.equal((await waiting.ended).code, 0)
  assert.deepEqual(
    [savedAs(home, 'mine').pingToken, savedAs(home, 'mine').expiresAt],
    [pingToken, later(expiresAt)],
  )
  assert.equal(endOf(await host.call('extend', given)), later(expiresAt))
})
