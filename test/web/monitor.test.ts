import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { formatCapability, type PulseCapability } from '../../src/client/index.ts'
import { layoutShift, NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { freePort } from '../support/ports.ts'
import { live } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'

suite('a monitor', () => {
  const site = startSite()

  test('a monitor is bought by clicks, shows a ping as it comes, and goes late by itself', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(site.server.url)
    await page.getByRole('link', { name: 'Buy a monitor' }).click()
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    const text = await page.getByRole('group', { name: 'The capability' }).innerText()
    const { publicId, pingToken } = JSON.parse(text) as PulseCapability
    await page.getByRole('button', { name: 'Open the monitor' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('Waiting', { exact: true }).waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'waiting')

    await site.server.mayfly.pulse({ publicId, pingToken }).ping()
    await page.getByText('Operational', { exact: true }).waitFor()
    await page.getByText('1 of 4,500', { exact: true }).waitFor()
    await page.getByText(/^in (?:1:00|0:\d\d)$/).waitFor()
    await page.getByText(/^The last 1 ping, since .* None came late\.$/).waitFor()

    // A minute of interval and one of grace.
    await live(site.server, 3 * 60_000)
    await page.getByText('Late', { exact: true }).waitFor()
    await page.getByText('beyond its grace').waitFor()
    await page
      .getByText(/^overdue by /)
      .first()
      .waitFor()
    await page.getByText('1 gap was longer than allowed').waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'late')
    assert.ok((await layoutShift(page)) < 0.01)

    await site.server.mayfly.pulse({ publicId, pingToken }).ping()
    await page.getByText('Operational', { exact: true }).waitFor()
    await page.getByText('The last 2 pings').waitFor()
    assert.doesNotMatch(page.url(), /pulse_/)
  })

  test('a monitor takes settings within their bounds, and shares its state until it is told not to', async (t) => {
    const monitor = await buyMonitor(site.server)
    const { page } = await site.visit(t, { viewport: NARROW, expected: /status of 40[24]/ })
    await open(page, monitor)
    await page.getByLabel('Name').fill('Backup <b>of the shop</b>')
    await page.getByLabel('A ping every (seconds)').fill('10')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The interval is 20 to 604,800 seconds').waitFor()
    await page.getByLabel('A ping every (seconds)').fill('3600')
    await page.getByLabel('Description').fill('Every hour')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Backup <b>of the shop</b>' }).waitFor()
    assert.equal((await site.server.mayfly.pulse(monitor).status()).expectedIntervalSeconds, 3600)

    await page.getByRole('button', { name: 'Share the status' }).click()
    const address = await page.getByRole('group', { name: 'the address of the status' }).innerText()
    assert.match(address, /\/status\/pulse_status_[0-9A-Za-z]{22}$/)
    const badge = await page.getByRole('group', { name: 'the badge in Markdown' }).innerText()
    const [, image] = /\[!\[state\]\((.+)\)\]\(.+\)/.exec(badge) ?? []
    const drawn = await fetch(image ?? '')
    assert.equal(drawn.headers.get('content-type'), 'image/svg+xml; charset=utf-8')
    assert.deepEqual(await seriousFaults(page), [], 'shared')

    for (const colorScheme of ['light', 'dark'] as const) {
      const stranger = await site.visit(t, { colorScheme, expected: /status of 404/ })
      await stranger.page.goto(address)
      await stranger.page.getByRole('heading', { name: 'Backup <b>of the shop</b>' }).waitFor()
      await stranger.page.getByText('Waiting', { exact: true }).waitFor()
      await stranger.page.getByText('Every hour', { exact: true }).waitFor()
      assert.deepEqual(await seriousFaults(stranger.page), [], `public, ${colorScheme}`)
      assert.ok((await layoutShift(stranger.page)) < 0.01)
    }

    await page.getByRole('button', { name: 'Stop sharing' }).click()
    await page.getByRole('button', { name: 'Share the status' }).waitFor()
    await page.goto(address)
    await page.getByRole('heading', { name: 'Nothing is shared here' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'not shared')
  })

  test('the page of a monitor says when the connection is lost, and what is so when it is back', async (t) => {
    const server = await startServer(t, { MAYFLY_PORT: String(await freePort()) })
    const monitor = await buyMonitor(server)
    await server.mayfly.pulse(monitor).update({ publicStatusEnabled: true })
    const { publicStatusId } = await server.mayfly.pulse(monitor).status()
    const expected = /ERR_(?:CONNECTION|INCOMPLETE|EMPTY)/
    const { page } = await site.visit(t, { expected })
    await open(page, monitor, server)
    const stranger = await site.visit(t, { expected })
    await stranger.page.goto(`${server.url}/status/${publicStatusId}`)
    await stranger.page.getByText(/^As of .*\.$/).waitFor()
    await server.stop()
    await page.getByText('Connection lost, trying again…').waitFor()
    await stranger.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await stranger.page.getByText('No answer since then').waitFor()
    await server.restart()
    await server.mayfly.pulse(monitor).ping()
    // The pause between two tries is half a minute at most.
    await page.getByText('Operational', { exact: true }).waitFor({ timeout: 60_000 })
    await page.getByText('Live', { exact: true }).waitFor()
    await stranger.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await stranger.page.getByText('Operational', { exact: true }).waitFor()
  })

  test('a monitor is destroyed when the person is sure', async (t) => {
    const monitor = await buyMonitor(site.server)
    const { page } = await site.visit(t, { expected: /status of 40[24]/ })
    await open(page, monitor)
    await page.getByRole('button', { name: 'Destroy the monitor' }).click()
    await page.getByRole('button', { name: 'Destroy it' }).click()
    await page.getByRole('heading', { name: 'Open a monitor' }).waitFor()
    await assert.rejects(site.server.mayfly.pulse(monitor).status(), { phrase: 'not found' })
  })

  async function open(
    page: Page,
    capability: PulseCapability,
    { url } = site.server,
  ): Promise<void> {
    await page.goto(`${url}/pulse`)
    const text = formatCapability({ capability, baseUrl: url })
    await page.getByLabel('Or paste the capability').fill(text)
    await page.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByText('Live', { exact: true }).waitFor()
  }
})

function buyMonitor(server: TestServer): Promise<PulseCapability> {
  return server.mayfly.buyPulse({
    planId: 'spark',
    onInvoice: ({ bolt11 }) => server.pay(bolt11),
  })
}
