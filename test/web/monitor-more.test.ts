import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { formatCapability, type PulseCapability } from '../../src/client/index.ts'
import { allFaults, NARROW, startSite } from '../support/browser.ts'
import { aMonitor, live } from '../support/pulse.ts'

const MINUTE = 60_000

suite('what a monitor can do besides', () => {
  const site = startSite()

  test('the switch id is made, shown again as it is, and retired after a question', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await site.visit(t, { viewport: NARROW })
    await open(page, monitor)
    const make = page.getByRole('button', { name: 'Make or show the switch id' })
    await make.click()
    const shown = page.getByRole('group', { name: 'the switch id' })
    const first = await shown.innerText()
    assert.equal(first, (await site.server.mayfly.pulse(monitor).makeSwitch()).switchId)
    assert.deepEqual(await allFaults(page), [])
    await page.getByRole('button', { name: 'Retire it' }).click()
    await page.getByRole('button', { name: 'Keep it' }).click()
    assert.equal(await shown.innerText(), first)
    await page.getByRole('button', { name: 'Retire it' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Retire it' }).click()
    await page.getByText('The switch is retired').waitFor()
    await make.click()
    assert.notEqual(await shown.innerText(), first, 'another one is made')
  })

  test('a failed run is told with its code and its duration, until one succeeds', async (t) => {
    const monitor = await aMonitor(site.server)
    const job = site.server.mayfly.pulse(monitor)
    const { page } = await site.visit(t)
    await open(page, monitor)
    assert.equal(await page.getByText('Last run', { exact: true }).isVisible(), false)
    await job.start()
    await page.getByText('1 running', { exact: true }).waitFor()
    await live(site.server, MINUTE / 2)
    await job.exit(3)
    await page.getByText(/^The last run failed with exit code 3, .* Late since /).waitFor()
    await page.getByText(/^Failed with exit code 3 after \d+ s, /).waitFor()
    assert.deepEqual(await allFaults(page), [])
    await job.exit(0)
    await page.getByText('Pings are arriving on time.').waitFor()
    await page.getByText(/^Succeeded, /).waitFor()
  })

  test('the times in which the service was unreachable are drawn and listed', async (t) => {
    const monitor = await aMonitor(site.server)
    await site.server.mayfly.pulse(monitor).ping()
    site.server.clock.advance(60 * MINUTE)
    await site.server.mayfly.pulse(monitor).ping()
    const { page } = await site.visit(t, { viewport: NARROW })
    await open(page, monitor)
    await page.locator('.strip .blind').waitFor({ state: 'attached' })
    assert.equal(await page.locator('.strip .gap').count(), 0, 'it made nothing late')
    await page.locator('summary').filter({ hasText: 'The service was unreachable once' }).click()
    await page.getByText(/^The service was unreachable from .* to .*; deadlines waited$/).waitFor()
    assert.deepEqual(await allFaults(page), [])
  })

  async function open(page: Page, capability: PulseCapability): Promise<void> {
    const { url } = site.server
    await page.goto(`${url}/pulse`)
    const text = formatCapability({ capability, baseUrl: url })
    await page.getByLabel('Or paste the capability').fill(text)
    await page.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByText('Live', { exact: true }).waitFor()
  }
})
