import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { layoutShift, NARROW, seriousFaults, startSite } from '../support/browser.ts'

suite('buying', () => {
  const site = startSite()

  test('three clicks buy an inbox, and a webhook shows as it comes', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(site.server.url)
    await page.getByRole('link', { name: 'Buy an inbox' }).click()
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('img', { name: /QR code/ }).waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'the invoice')
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'the capability')
    await page.getByRole('button', { name: 'Open the inbox' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    const address = await page.locator('.inbox-address code').innerText()
    assert.match(address, /\/c\/catch_[0-9A-Za-z]{22}$/)
    await fetch(`${address}/hook?from=test`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"big":12345678901234567890,"text":"<b>not markup</b>"}',
    })
    await page.getByRole('button', { name: /POST.*\/hook/ }).click()
    const body = page.getByRole('group', { name: 'Body', exact: true })
    assert.equal(
      await body.innerText(),
      '{\n  "big": 12345678901234567890,\n  "text": "<b>not markup</b>"\n}',
    )
    await page.getByText('1 of 100', { exact: true }).waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'a request')
    assert.deepEqual(await stored(page), { local: [], session: ['mayfly.open.catch'] })
    assert.doesNotMatch(page.url(), /catch_/)
  })

  test('a reload in the middle of paying goes on with the same invoice', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(`${site.server.url}/buy#pulse`)
    await page.getByRole('button', { name: /^Standard/ }).click()
    const invoice = await invoiceOf(page)
    await page.reload()
    assert.equal(await invoiceOf(page), invoice)
    // Paid by a wallet elsewhere, while the page is away.
    await page.goto('about:blank')
    await site.server.pay(invoice)
    await page.goto(`${site.server.url}/buy`)
    await page.getByRole('heading', { name: 'Your monitor is ready' }).waitFor()
    const shown = await page.locator('.content code').innerText()
    await page.reload()
    await page.getByRole('heading', { name: 'Your monitor is ready' }).waitFor()
    assert.equal(await page.locator('.content code').innerText(), shown, 'not saved, so not lost')
    await page.getByRole('button', { name: 'Keep in this browser' }).click()
    assert.deepEqual(await stored(page), { local: ['mayfly.kept'], session: [] })
    await page.reload()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
  })

  test('the proof of a payment made in the page is kept beside the key, and shown to the service', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|ERR_FAILED/ })
    await page.goto(`${site.server.url}/buy#catch`)
    await page.getByRole('button', { name: /^Spark/ }).click()
    await invoiceOf(page)
    await page.route('**/api/payments/**', (route) => route.abort())
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    const kept = await page.waitForFunction(
      () => JSON.parse(sessionStorage.getItem('mayfly.paying') ?? '{}').preimage,
    )
    const proof = String(await kept.jsonValue())
    assert.match(proof, /^[0-9a-f]{64}$/)
    await page.unrouteAll({ behavior: 'wait' })
    const asked = page.waitForRequest('**/api/payments/catch')
    await page.reload()
    assert.equal((await asked).headers()['payment-preimage'], proof)
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
  })

  test('a service that cannot be reached keeps the purchase, and is asked for the same order', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|ERR_FAILED/ })
    await page.goto(`${site.server.url}/buy#catch`)
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
    await page.route('**/api/payments/**', (route) => route.abort())
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByText('The service could not be reached').waitFor()
    assert.deepEqual(await stored(page), { local: [], session: ['mayfly.paying'] })
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Ask again for the same order' }).click()
    await invoiceOf(page)
  })

  test('the capability is downloaded as it is shown, and the file opens the inbox', async (t) => {
    const { page } = await site.visit(t, { viewport: NARROW })
    await page.goto(`${site.server.url}/buy#catch`)
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    const path = await file.path()
    const text = await readFile(path, 'utf8')
    assert.equal(text.trim(), await page.locator('.content code').innerText())
    const other = await site.visit(t, { viewport: NARROW })
    await other.page.goto(`${site.server.url}/catch`)
    await other.page.getByLabel('Load its capability file').setInputFiles({
      name: 'capability.json',
      mimeType: 'application/json',
      buffer: Buffer.from(text),
    })
    await other.page.getByRole('heading', { name: 'Waiting for requests' }).waitFor()
    assert.deepEqual(await seriousFaults(other.page), [])
    assert.ok((await layoutShift(other.page)) < 0.01)
  })

  test('the keyboard alone buys an inbox and opens it', async (t) => {
    const { page } = await site.visit(t, { reducedMotion: 'reduce' })
    await page.goto(site.server.url)
    await pressAt(page, /^Buy an inbox$/)
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
    await pressAt(page, /^Spark/)
    // The step that is reached has the keyboard, so that a reader hears it.
    await page.locator('#step:focus').filter({ hasText: 'Pay 100 sat' }).waitFor()
    await pressAt(page, /^Pay \(simulator\)$/)
    await page.locator('#step:focus').filter({ hasText: 'Your inbox is ready' }).waitFor()
    await pressAt(page, /^Keep in this browser$/)
    await page.getByText('anyone who uses it can open this').waitFor()
    await pressAt(page, /^Open the inbox$/)
    await page.getByText('Live', { exact: true }).waitFor()
  })

  test('a service that is away is reported, and asked again', async (t) => {
    const { page } = await site.visit(t, { expected: /ERR_FAILED/ })
    await page.route('**/api/catalog', (route) => route.abort())
    await page.goto(`${site.server.url}/buy`)
    await page.getByText('The service could not be reached. Nothing is lost').waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
  })

  test('a checkout that is closed says so, and sells nothing', async (t) => {
    const { page } = await site.visit(t)
    await page.route('**/api/catalog', async (route) => {
      const response = await route.fetch()
      await route.fulfill({
        response,
        json: { ...(await response.json()), checkoutEnabled: false },
      })
    })
    await page.goto(site.server.url)
    await page.getByText('The checkout is closed').waitFor()
    await page.goto(`${site.server.url}/buy`)
    await page.getByText('The checkout is closed').waitFor()
    assert.equal(await page.getByRole('button', { name: /^Spark/ }).isDisabled(), true)
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('an invoice that ran out says that nothing was charged', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 40[24]/ })
    await page.goto(`${site.server.url}/buy#catch`)
    await page.getByRole('button', { name: /^Spark/ }).click()
    await invoiceOf(page)
    site.server.clock.advance(16 * 60_000)
    await page.getByText('Nothing was charged').waitFor()
    await page.getByRole('button', { name: 'Choose a plan' }).click()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
    assert.deepEqual(await stored(page), { local: [], session: [] })
  })

  test('a service that goes away while an invoice waits is reported, and what was paid meanwhile comes', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|ERR_FAILED/ })
    await page.goto(`${site.server.url}/buy#catch`)
    await page.getByRole('button', { name: /^Spark/ }).click()
    const invoice = await invoiceOf(page)
    await page.route('**/api/payments/order_*', (route) => route.abort())
    await page.getByText('The service is away').waitFor()
    await site.server.pay(invoice)
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
  })

  test('a clock that is an hour fast ends no invoice early', async (t) => {
    const { page } = await site.visit(t)
    await page.addInitScript(() => {
      const now = Date.now
      Date.now = () => now() + 3_600_000
    })
    await page.goto(`${site.server.url}/buy#catch`)
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByText(/^Time left: \d\d:\d\d$/).waitFor()
    await page.getByText('Waiting for the payment…').waitFor()
  })

  test('an invoice whose time is over cannot be paid from the page, while it is being checked', async (t) => {
    const { page } = await site.visit(t)
    // Over by this clock, and not yet by the test's own, which the service goes by.
    await page.route('**/api/payments/**', async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ response: answer, headers: { ...answer.headers(), date: LATER } })
    })
    await page.goto(`${site.server.url}/buy#catch`)
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByText('The time is over. Checking whether it was paid…').waitFor()
    await page.locator('[inert]').getByRole('link', { name: 'Open in a wallet' }).waitFor()
    await page.getByRole('button', { name: 'Choose another plan' }).waitFor()
  })
})

/** As a service says it whose time is a day on. */
const LATER = new Date(Date.now() + 86_400_000).toUTCString()

/** Goes there with the tab key and presses Enter. */
async function pressAt(page: Page, name: RegExp): Promise<void> {
  for (let stops = 0; stops < 40; stops++) {
    await page.keyboard.press('Tab')
    const text = await page.evaluate(() => (document.activeElement as HTMLElement).innerText)
    if (name.test(text)) return page.keyboard.press('Enter')
  }
  throw new Error(`the keyboard does not come to ${name}`)
}

async function invoiceOf(page: Page): Promise<string> {
  const link = page.getByRole('link', { name: 'Open in a wallet' })
  return ((await link.getAttribute('href')) ?? '').replace('lightning:', '')
}

function stored(page: Page): Promise<{ local: string[]; session: string[] }> {
  return page.evaluate(() => ({
    local: Object.keys(localStorage),
    session: Object.keys(sessionStorage),
  }))
}
