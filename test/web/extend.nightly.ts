import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { allFaults, NARROW, startSite } from '../support/browser.ts'
import { anInbox } from '../support/catch.ts'
import { assertExtended, EXTENDABLE } from '../support/extension.ts'
import { invoiceOf, pressInMenu, visitLive } from '../support/pages.ts'
import { aMonitor } from '../support/pulse.ts'
import { query } from '../support/store.ts'

const HOUR = 60 * 60 * 1000

const [INBOX, MONITOR] = EXTENDABLE

suite('extending on the pages', () => {
  const site = startSite()

  test('an inbox is extended from its menu, and its page shows the new end', async (t) => {
    const { server } = site
    const held = await anInbox(server)
    const { page } = await visitLive(site, t, held, { viewport: NARROW })
    await pressInMenu(page, 'Extend the inbox')
    const extend = page.getByRole('button', { name: /^Extend for / })
    const [one, other] = await Promise.all(
      [extend, page.getByRole('button', { name: 'Close' })].map((each) => each.boundingBox()),
    )
    assert.equal(one?.y, other?.y, 'its buttons stand in one row')
    await extend.click()
    await page.getByText('Waiting for payment…').waitFor()
    assert.deepEqual(await allFaults(page), [])
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByText(/^Extended\. It ends /).waitFor()
    await page.getByText('0 of 200').waitFor()
    await assertExtended(server, { held, times: 1, limits: INBOX?.limits ?? {} })
  })

  test('a price that is not known is no plan that is off: the reason counts down to another try', async (t) => {
    const { server } = site
    const held = await anInbox(server)
    const { page } = await visitLive(site, t, held, { expected: /status of 429/ })
    await page.route('**/api/catalog', (route) =>
      route.fulfill({
        status: 429,
        headers: { 'retry-after': '2' },
        json: { error: 'rate limited' },
      }),
    )
    await pressInMenu(page, 'Extend the inbox')
    await page.getByText('Too many requests. Nothing was spent.').waitFor()
    assert.ok(await page.getByRole('button', { name: /^Try again in \d s$/ }).isDisabled())
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again', exact: true }).click()
    await page.getByRole('button', { name: /^Extend for / }).waitFor()
  })

  test('an inbox that ends soon offers to be extended without its menu', async (t) => {
    const { server } = site
    const held = await anInbox(server)
    const { page } = await visitLive(site, t, held, { viewport: NARROW })
    const offer = page.getByRole('button', { name: 'Extend', exact: true })
    assert.equal(await offer.isVisible(), false)
    const now = server.now()
    const [row] = await query(
      server,
      'update catch_inbox set created_at = $2 where public_id = $1 returning number',
      held.publicId,
      now - 23 * HOUR,
    )
    const ending = 'update catch_inbox_use set expires_at = $2 where number = $1 returning number'
    await query(server, ending, Number(row?.number), now + HOUR)
    await page.reload()
    await offer.waitFor()
    assert.deepEqual(await allFaults(page), [])
  })

  test('an extension whose invoice ran out leads back to the price, and to another invoice', async (t) => {
    const { server } = site
    const held = await anInbox(server)
    const { page } = await visitLive(site, t, held, { expected: /status of 40[24]/ })
    await pressInMenu(page, 'Extend the inbox')
    const extend = page.getByRole('button', { name: /^Extend for / })
    await extend.click()
    const first = await invoiceOf(page)
    server.clock.advance(16 * 60_000)
    await page.getByText('Nothing was charged').waitFor()
    assert.deepEqual(await allFaults(page), [])
    await page.getByRole('button', { name: 'Get a new invoice' }).click()
    const second = await invoiceOf(page)
    assert.notEqual(second, first)
    server.clock.advance(16 * 60_000)
    await page.getByRole('button', { name: 'Back to the price' }).click()
    await extend.click()
    assert.notEqual(await invoiceOf(page), second)
  })

  test('an inbox that ended before its extension was paid is sold anew to the wallet of the page', async (t) => {
    const { server } = site
    const held = await anInbox(server)
    const { page } = await visitLive(site, t, held, { expected: /status of 40[124]/ })
    await pressInMenu(page, 'Extend the inbox')
    await page.getByRole('button', { name: /^Extend for / }).click()
    await page.getByText('Waiting for payment…').waitFor()
    const ending = `update catch_inbox_use set expires_at = $2
      where number = (select number from catch_inbox where public_id = $1) returning number`
    await query(server, ending, held.publicId, server.now() - 1)
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByText('The key is not saved.').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    const address = await page.locator('.inbox-address code').innerText()
    assert.doesNotMatch(address, new RegExp(held.publicId))
  })

  test('an extension that is paid after its dialog was closed is shown at once', async (t) => {
    const { server } = site
    const held = await anInbox(server)
    const { page } = await visitLive(site, t, held)
    await pressInMenu(page, 'Extend the inbox')
    await page.getByRole('button', { name: /^Extend for / }).click()
    const invoice = await invoiceOf(page)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await server.pay(invoice)
    await page.getByText(/^Extended\. It ends /).waitFor()
    await page.getByText('0 of 200').waitFor()
  })

  test('a monitor is extended by the same invoice after its page was loaded anew', async (t) => {
    const { server } = site
    const held = await aMonitor(server)
    const { page } = await visitLive(site, t, held)
    const invoice = async (): Promise<string> => {
      await pressInMenu(page, 'Extend the monitor')
      await page.getByRole('button', { name: /^Extend for / }).click()
      return invoiceOf(page)
    }
    const first = await invoice()
    await page.reload()
    assert.equal(await invoice(), first)
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByText(/^Extended\. It ends /).waitFor()
    await assertExtended(server, { held, times: 1, limits: MONITOR?.limits ?? {} })
  })
})
