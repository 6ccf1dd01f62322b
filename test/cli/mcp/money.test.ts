import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { openPurchase } from '../../../src/cli/vault/purchases.ts'
import { commandLine, WITH_WALLET } from '../../support/command-line.ts'
import { aHost } from '../../support/mcp-host.ts'
import { paidInvoices, spentSats, stuckService } from '../../support/mcp-money.ts'
import { startServer } from '../../support/server.ts'
import { between } from '../../support/serving.ts'
import { query } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const wallet = WITH_WALLET.environment

test('a price above the ceiling names both, and what to set, before the user is asked or an invoice is made', async (t) => {
  const environment = { ...wallet, MAYFLY_MAX_SATS: '99' }
  const { server, home, host, questions } = await aHost(t, { environment, answers: ['accept'] })
  const refused = await host.call('buy_inbox', { planId: 'spark', name: 'hooks' })
  assert.match(
    refused.text,
    /^The price of 100 sat is above the ceiling of 99 sat, and nothing was paid\..*MAYFLY_MAX_SATS/,
  )
  assert.deepEqual(questions, [])
  assert.deepEqual(await query(server, 'select order_id from purchase_order'), [])
  assert.equal(openPurchase({ folder: join(home, 'mayfly') }, 'hooks'), null)
})

describe('a repeated purchase', () => {
  test('what the wallet refused to pay is not called unknown, and a repeat of the call pays it', async (t) => {
    const server = await startServer(t)
    let isRefusing = true
    const url = await between(t, server.url, (path, response) => {
      if (!isRefusing || path !== '/simulator/pay') return false
      response.writeHead(400).end()
      return true
    })
    const { host } = await aHost(t, { server: { ...server, url } })
    const asked = { planId: 'spark', name: 'hooks' }
    assert.match((await host.call('buy_inbox', asked)).text, /The wallet did not pay/)
    const checked = await host.call('check_order', { name: 'hooks' })
    assert.equal(
      checked.text,
      'The wallet did not pay, so nothing was paid. To try again, repeat the call that buys or extends hooks.',
    )
    isRefusing = false
    assert.equal((await host.call('buy_inbox', asked)).value.state, 'settled')
    assert.equal(await paidInvoices(server), 1)
  })

  test('twenty calls with one name pay once', async (t) => {
    const { server, host } = await aHost(t)
    const results = await Promise.all(
      Array.from({ length: 20 }, () => host.call('buy_monitor', { planId: 'spark', name: 'job' })),
    )
    const bought = new Set(results.map(({ value }) => JSON.stringify(value.bought)))
    assert.equal(bought.size, 1)
    assert.equal(await paidInvoices(server), 1)
    const other = await host.call('buy_inbox', { planId: 'spark', name: 'job' })
    assert.match(other.text, /Something else is saved or under way as job/)
  })

  test('a process that is killed while it pays leaves the payment counted, and the next one pays once', async (t) => {
    const service = await stuckService(t, (path) => path === '/simulator/pay')
    const environment = { ...wallet, MAYFLY_MAX_SATS_PER_DAY: '149' }
    const options = { server: service, environment, hasProcess: true }
    const { home, host: first } = await aHost(t, options)
    const lost = first.call('buy_inbox', { planId: 'spark', name: 'hooks' }).catch(() => 'lost')
    await service.reached
    process.kill(first.pid, 'SIGKILL')
    assert.equal(await lost, 'lost')
    assert.equal(spentSats(home), 100)
    const { host: second } = await aHost(t, { ...options, home })
    const same = await second.call('buy_inbox', { planId: 'spark', name: 'other' })
    assert.match(same.text, /hooks is the same, and may have been paid: nobody knows yet/)
    const other = await second.call('buy_monitor', { planId: 'spark', name: 'other' })
    assert.match(other.text, /\d+ of the day's 149 sat are left/)
    service.open()
    const done = await second.call('buy_inbox', { planId: 'spark', name: 'hooks' })
    assert.equal(done.value.state, 'settled', done.text)
    assert.equal(await paidInvoices(service), 1)
    assert.equal(spentSats(home), 100)
  })

  test('a call that is cancelled before it pays, pays nothing', async (t) => {
    const service = await stuckService(t, (path) => path === '/api/payments/catch')
    const { host } = await aHost(t, { server: service })
    const cancel = new AbortController()
    const asked = { planId: 'spark', name: 'hooks' }
    const cancelled = host
      .call('buy_inbox', asked, { signal: cancel.signal })
      .catch(() => 'cancelled')
    await service.reached
    cancel.abort()
    assert.equal(await cancelled, 'cancelled')
    // What is answered now came after the word that it is cancelled.
    await host.call('catalog')
    service.open()
    const checked = await host.call('check_order', { name: 'hooks' })
    assert.match(checked.text, /Nothing was bought as hooks, and nothing is being bought/)
    assert.equal(await paidInvoices(service), 0)
  })

  test('a call that is cancelled while it pays goes on, and its purchase is saved', async (t) => {
    const service = await stuckService(t, (_path, isPaid) => isPaid)
    const { home, host } = await aHost(t, { server: service })
    const cancel = new AbortController()
    const asked = { planId: 'spark', name: 'hooks' }
    const cancelled = host
      .call('buy_inbox', asked, { signal: cancel.signal })
      .catch(() => 'cancelled')
    await service.reached
    cancel.abort()
    assert.equal(await cancelled, 'cancelled')
    await until('the process has heard of it', async () => host.err().includes('was cancelled'))
    assert.match(host.err(), /cancelled while hooks was being paid\. It goes on, and is saved here/)
    const again = host.call('buy_inbox', asked)
    service.open()
    assert.equal((await again).value.state, 'settled')
    assert.equal(await paidInvoices(service), 1)
    assert.equal(spentSats(home), 100)
  })
})

test('without a wallet the user pays the invoice, and check_order collects it', async (t) => {
  const { server, home, host } = await aHost(t, { environment: {} })
  assert.match(host.instructions, /No wallet is configured/)
  const asked = { planId: 'spark', name: 'hooks' }
  const offer = await host.call('buy_inbox', asked)
  assert.equal(offer.value.state, 'payment required')
  const { bolt11 } = offer.value.quote as { bolt11: string }
  const repeated = await host.call('buy_inbox', asked)
  assert.equal((repeated.value.quote as { bolt11: string }).bolt11, bolt11)
  assert.equal((await host.call('check_order', { name: 'hooks' })).value.state, 'payment required')
  await server.pay(bolt11)
  const done = await host.call('check_order', { name: 'hooks' })
  assert.equal(done.value.state, 'settled', done.text)
  assert.equal(spentSats(home), 0)
  // The command line has the same.
  const cli = await commandLine(t, server.url)
  const status = await cli.json(['status', 'hooks'], {
    environment: { XDG_DATA_HOME: home },
  })
  assert.equal(status.status, 'active')
  assert.match(
    (await host.call('check_order', { name: 'nothing' })).text,
    /Nothing was bought as nothing/,
  )
})
