import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { blockStorage, layoutShift, NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { anInbox } from '../support/catch.ts'
import {
  buyInbox,
  download,
  invoiceOf,
  openLive,
  openWithoutSaving,
  pressInKeyMenu,
  shownKey,
  stored,
} from '../support/pages.ts'
import { startServer } from '../support/server.ts'

suite('buying', () => {
  const site = startSite()

  test('an invoice outlives a reload, what is paid meanwhile is there until its key is downloaded, and the file opens it', async (t) => {
    const { page } = await site.visit(t, { viewport: NARROW })
    await page.goto(`${site.server.url}/buy#catch`)
    await page.getByRole('button', { name: /^Standard/ }).click()
    const invoice = await invoiceOf(page)
    await page.reload()
    assert.equal(await invoiceOf(page), invoice)
    // Paid by a wallet elsewhere, while the page is away.
    await page.goto('about:blank')
    await site.server.pay(invoice)
    await page.goto(`${site.server.url}/buy`)
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
    const shown = await shownKey(page)
    await page.reload()
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
    assert.equal(await shownKey(page), shown, 'not saved, so not lost')
    await page.getByRole('button', { name: 'Copy the key' }).click()
    assert.deepEqual(await stored(page), ['mayfly.unfinished', 'mayfly.paying'])
    const file = await download(page, 'Download the key')
    assert.deepEqual(await stored(page), [])
    await page.reload()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()

    const buffer = await readFile(await file.path())
    assert.equal(buffer.toString().trim(), shown)
    const other = await site.visit(t, { viewport: NARROW })
    await other.page.goto(`${site.server.url}/catch`)
    await other.page
      .getByLabel('Key file')
      .setInputFiles({ name: 'capability.json', mimeType: 'application/json', buffer })
    await other.page.getByRole('heading', { name: 'Waiting for requests' }).waitFor()
    assert.deepEqual(await seriousFaults(other.page), [])
    assert.ok((await layoutShift(other.page)) < 0.01)
  })

  test('the proof of a payment made in the page is kept beside the key, and shown to the service', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|ERR_FAILED/ })
    await page.goto(`${site.server.url}/buy#catch/spark`)
    await invoiceOf(page)
    await page.route('**/api/payments/**', (route) => route.abort())
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    const kept = await page.waitForFunction(
      () => JSON.parse(localStorage.getItem('mayfly.unfinished') ?? '[]')[0]?.record.preimage,
    )
    const proof = String(await kept.jsonValue())
    assert.match(proof, /^[0-9a-f]{64}$/)
    await page.unrouteAll({ behavior: 'wait' })
    const asked = page.waitForRequest(
      (request) => request.headers()['payment-preimage'] === proof && request.method() === 'GET',
    )
    await page.reload()
    await asked
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
  })

  test('a service that is away is reported, and asked again: for the plans, and for the same order', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|ERR_FAILED/ })
    const keys = new Set<string | undefined>()
    page.on('request', (request) => {
      if (request.method() === 'POST') keys.add(request.headers()['idempotency-key'])
    })
    const isAway = page.getByText('The service does not answer. Your data and payments are safe')
    await page.route('**/api/catalog', (route) => route.abort())
    await page.goto(`${site.server.url}/buy#catch`)
    await isAway.waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
    await page.route('**/api/payments/**', (route) => route.abort())
    await page.getByRole('button', { name: /^Spark/ }).click()
    await isAway.waitFor()
    assert.deepEqual(await stored(page), [], 'no invoice was shown')
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again' }).click()
    await invoiceOf(page)
    assert.equal(keys.size, 1)
    assert.deepEqual(await stored(page), ['mayfly.unfinished', 'mayfly.paying'])
  })

  test('what was paid and not saved is there after its order is sealed', async (t) => {
    const { page, context } = await site.visit(t)
    await buyInbox(page, site.server)
    const key = JSON.parse(await shownKey(page))
    await page.close()
    // The first use of a token ends the repeats of the order.
    await site.server.mayfly.catch(key).status()
    const tab = await context.newPage()
    await tab.goto(`${site.server.url}/buy`)
    const line = tab.getByText('You have not saved the key of a paid purchase: Inbox')
    await line.waitFor()
    await tab.getByRole('button', { name: 'Continue' }).click()
    assert.deepEqual(JSON.parse(await shownKey(tab)), key)
  })

  test('the keyboard alone buys an inbox and opens it', async (t) => {
    const { page } = await site.visit(t, { reducedMotion: 'reduce' })
    await page.goto(site.server.url)
    await pressAt(page, /^Buy an inbox$/)
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
    await pressAt(page, /^Spark/)
    // The step that is reached has the keyboard, so that a reader hears it.
    await page.locator('#step:focus').filter({ hasText: 'Pay 100 sat' }).waitFor()
    await page.getByText('100 requests · 5 MiB in total · 64 KiB per request').waitFor()
    await pressAt(page, /^Pay \(simulator\)$/)
    await page.locator('#step:focus').filter({ hasText: 'Your inbox is ready' }).waitFor()
    await pressAt(page, /^Save and open$/)
    await page.getByText('Live', { exact: true }).waitFor()
  })

  test('a link to a plan asks for its invoice at once, once only, and names what is bought', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(`${site.server.url}/buy#pulse/standard`)
    const invoice = await invoiceOf(page)
    await page.getByText('Monitor · Standard · 30 days').waitFor()
    await page.getByText('10,000 pings').waitFor()
    assert.equal(await page.title(), 'Pay 300 sat for a monitor · Mayfly')
    assert.match(page.url(), /#pulse$/, 'a reload later does not buy again')
    await page.reload()
    assert.equal(await invoiceOf(page), invoice)
    await site.server.pay(invoice)
    await page.getByRole('heading', { name: 'Your monitor is ready' }).waitFor()
    assert.equal(await page.title(), 'Paid: your monitor is ready · Mayfly')
    await page.getByRole('button', { name: 'Save and open' }).click()
    await page.getByText('Monitor 1', { exact: true }).waitFor()
    assert.deepEqual(await stored(page), ['mayfly.kept', 'mayfly.open.pulse'])
    await page.goto(`${site.server.url}/buy#pulse`)
    await page.getByRole('button', { name: /^Standard/ }).waitFor()
    assert.equal(await page.title(), 'Buy a monitor · Mayfly')
  })

  test('another tab goes on with an unfinished purchase, and another plan loses nothing', async (t) => {
    const { page, context } = await site.visit(t, { viewport: NARROW })
    await page.goto(`${site.server.url}/buy#catch/long`)
    const inbox = await invoiceOf(page)
    await page.goto(`${site.server.url}/buy#pulse/spark`)
    await page.getByText('Monitor · Spark · 24 hours').waitFor()
    const monitor = await invoiceOf(page)
    assert.notEqual(monitor, inbox)
    await page.reload()
    assert.equal(await invoiceOf(page), monitor)
    await page.goto(`${site.server.url}/buy#catch/standard`)
    await page.getByText('Inbox · Standard').waitFor()
    await invoiceOf(page)
    await page.close()
    const tab = await context.newPage()
    await tab.goto(site.server.url)
    await tab
      .getByText('You have an unfinished purchase: Inbox · Long · 30 days · 900 sat.')
      .waitFor()
    assert.deepEqual(await seriousFaults(tab), [])
    const goOnWith = (plan: string) =>
      tab
        .locator('.notice')
        .filter({ hasText: `Inbox · ${plan}` })
        .getByRole('button', { name: 'Continue' })
        .click()
    await goOnWith('Standard')
    await tab.getByText('Inbox · Standard').waitFor()
    await site.server.pay(inbox)
    await tab.goto(site.server.url)
    await goOnWith('Long')
    await tab.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
    await tab.getByRole('button', { name: 'Save and open' }).click()
    await tab.getByText('Live', { exact: true }).waitFor()
    const left = await tab.evaluate(() => localStorage.getItem('mayfly.unfinished') ?? '')
    assert.match(left, /"product":"pulse"/)
    assert.match(left, /"planId":"standard"/)
    assert.doesNotMatch(left, /"planId":"long"/)
  })

  test('a wallet is opened without a question, and so is a tab closed while its order is kept', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|Failed to launch/ })
    const asked: string[] = []
    page.on('dialog', (dialog) => {
      asked.push(dialog.type())
      return dialog.accept()
    })
    await page.goto(`${site.server.url}/buy#catch/spark`)
    await invoiceOf(page)
    await page.getByRole('link', { name: 'Open in a wallet' }).click()
    // The link that Chromium has no program for has been handled when the page answers again.
    await page.getByText('Waiting for payment…').click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
    await page.goto('about:blank')
    await page.goto(`${site.server.url}/buy`)
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
    assert.deepEqual(asked, [])
  })

  test('a browser that stores nothing still buys, says that the key must be downloaded, and never calls it saved', async (t) => {
    const { page } = await site.visit(t)
    await blockStorage(page)
    await page.goto(`${site.server.url}/whisper`)
    await page.getByLabel('Text', { exact: true }).waitFor()
    await page.getByText('This browser stores nothing for this site.').waitFor()
    await page.goto(`${site.server.url}/buy#catch/spark`)
    await page.getByText('Keep this page open, or save the recovery text.').waitFor()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    page.on('dialog', (dialog) => dialog.accept())
    await download(page, 'Download the key')

    await openLive(page, await anInbox(site.server), site.server)
    await pressInKeyMenu(page, 'Save in this browser')
    await page.getByText('This browser stores nothing for this site.').waitFor()
    await page.getByText('Key', { exact: true }).click()
    await page.getByText('Open in this tab only.').waitFor()
    assert.equal(await page.getByText('Saved in this browser.').count(), 0)
  })

  test('a busy service is not said to be silent, but named with the time until the next try', async (t) => {
    const { page } = await site.visit(t, { expected: /status of (?:402|429|503)/ })
    await page.goto(`${site.server.url}/buy#catch`)
    const answers: [status: number, seconds: string, error: string][] = [
      [429, '7', 'rate limited'],
      [503, '3', 'service unavailable'],
    ]
    await page.route(
      '**/api/payments/catch',
      (route) => {
        const [status = 500, seconds = '', error] = answers.shift() ?? []
        return route.fulfill({ status, headers: { 'retry-after': seconds }, json: { error } })
      },
      { times: answers.length },
    )
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByText('Too many requests. Nothing was spent.').waitFor()
    await page.getByRole('button', { name: 'Try again in 5 s' }).waitFor()
    await page.getByRole('button', { name: 'Try again', exact: true }).click()
    await page.getByText(/^The service is busy or away\. Trying again in [1-3] s\.$/).waitFor()
    await page.getByText('Waiting for payment…').waitFor()
  })

  test('who paid and has nothing recovers it by the invoice and its preimage, or by the recovery text', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 40[24]/ })
    await page.goto(`${site.server.url}/buy#catch/spark`)
    const invoice = await invoiceOf(page)
    await page.getByText('Recovery text', { exact: true }).click()
    const saved = await download(page, 'Download')
    const text = await readFile(await saved.path(), 'utf8')
    await page.close()

    const other = await site.visit(t, { viewport: NARROW, expected: /status of 40[24]/ })
    await other.page.goto(`${site.server.url}/recover`)
    const field = other.page.getByLabel('Recovery text, or the whole invoice')
    await field.fill(text.slice(0, 200))
    await other.page.getByRole('button', { name: 'Recover' }).click()
    await other.page.getByText('This is neither a recovery text nor a whole invoice.').waitFor()
    await field.fill(text)
    await other.page.getByRole('button', { name: 'Recover' }).click()
    await other.page.getByText('The service has not seen the payment yet.').waitFor()
    const preimage = await site.server.pay(invoice)
    await other.page.getByRole('button', { name: 'Recover' }).click()
    await other.page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()

    const third = await site.visit(t, { expected: /status of 40[24]/ })
    await third.page.goto(`${site.server.url}/recover`)
    await third.page
      .getByLabel('Recovery text, or the whole invoice')
      .fill(`LIGHTNING:${invoice.toUpperCase()}`)
    const proof = third.page.getByLabel('Preimage, or proof of payment')
    await proof.fill('00'.repeat(32))
    await third.page.getByRole('button', { name: 'Recover' }).click()
    await third.page.getByText('No paid order matches.').waitFor()
    assert.deepEqual(await seriousFaults(third.page), [])
    const asked = third.page.waitForRequest('**/api/payments/recover')
    await proof.fill(preimage)
    await third.page.getByRole('button', { name: 'Recover' }).click()
    assert.equal(new URL((await asked).url()).search, '', 'the proof is in no URL')
    await third.page.getByRole('button', { name: 'Save and open' }).click()
    await third.page.getByText('Live', { exact: true }).waitFor()
    assert.ok(!third.page.url().includes(preimage))
  })

  test('a form that a busy service refused counts down to its next try', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 429/ })
    await page.route('**/api/payments/recover', (route) =>
      route.fulfill({
        status: 429,
        headers: { 'retry-after': '40' },
        json: { error: 'rate limited' },
      }),
    )
    await page.goto(`${site.server.url}/recover`)
    await page.getByLabel('Recovery text, or the whole invoice').fill(`lnbc${'1'.repeat(300)}`)
    await page.getByLabel('Preimage, or proof of payment').fill('00'.repeat(32))
    await page.getByRole('button', { name: 'Recover', exact: true }).click()
    const counting = page.getByRole('button', { name: /^Recover in \d+ s$/ })
    await counting.waitFor()
    assert.ok(await counting.isDisabled())
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('a wallet of the browser pays by WebLN, and only a proof that opens the invoice is kept', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402/ })
    await page.exposeFunction('payElsewhere', (bolt11: string) => site.server.pay(bolt11))
    await page.addInitScript(() => {
      const outer = globalThis as unknown as {
        payElsewhere(bolt11: string): Promise<string>
        answers: string[]
        webln: unknown
      }
      let isFirst = true
      outer.webln = {
        enable: async () => undefined,
        async sendPayment(bolt11: string) {
          if (isFirst) {
            isFirst = false
            throw new Error('the user declined')
          }
          await outer.payElsewhere(bolt11)
          return { preimage: '00'.repeat(32) }
        },
      }
    })
    // Holds the poll back, so that the page has nothing but the wallet's word.
    const held = Promise.withResolvers<void>()
    await page.route('**/api/payments/order_*', async (route) => {
      await held.promise
      await route.continue()
    })
    // The simulator pays by itself, so the page must not know that it is one.
    await page.route(`${site.server.url}/buy`, async (route) => {
      const response = await route.fetch()
      const html = await response.text()
      const body = html.replace('data-mode="simulator"', 'data-mode="node"')
      await route.fulfill({ response, body })
    })
    await page.goto(`${site.server.url}/buy#catch/spark`)
    const pay = page.getByRole('button', { name: 'Pay with this browser’s wallet' })
    await pay.click()
    await page.getByText('The wallet reported no payment').waitFor()
    await pay.click()
    await page.locator('button:disabled', { hasText: 'this browser’s wallet' }).waitFor()
    held.resolve()
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
    const kept = await page.evaluate(() => localStorage.getItem('mayfly.unfinished') ?? '')
    assert.doesNotMatch(kept, /preimage/)
  })

  test('an inbox that is open and saved nowhere is not closed for another one without a question', async (t) => {
    const { page } = await site.visit(t)
    page.on('dialog', (dialog) => dialog.accept())
    const opened = () => page.evaluate(() => sessionStorage.getItem('mayfly.open.catch'))
    await buyInbox(page, site.server)
    await openWithoutSaving(page)
    await page.getByText('Live', { exact: true }).waitFor()
    assert.deepEqual(await stored(page), ['mayfly.open.catch'])
    const first = await opened()
    await buyInbox(page, site.server)
    await openWithoutSaving(page)
    await page.getByRole('heading', { name: 'Close an inbox that is not saved?' }).waitFor()
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    assert.equal(await opened(), first)
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
    await page.getByText('Nothing can be bought now').waitFor()
    await page.goto(`${site.server.url}/buy#catch/spark`)
    await page.getByText('Nothing can be bought now').waitFor()
    await page.getByText('The checkout is closed.').first().waitFor()
    assert.equal(await page.getByRole('button', { name: /^Spark/ }).isDisabled(), true)
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('a day that is sold out says so, and from when sales go on', async (t) => {
    const server = await startServer(t, { MAYFLY_MAX_SALES_PER_DAY: '1' })
    server.awaitNoon()
    await anInbox(server)
    // The sales of a day are counted once a second.
    server.clock.advance(2_000)
    const { page } = await site.visit(t)
    await page.goto(server.url)
    await page.getByText('sales begin again at midnight UTC').waitFor()
    await page.goto(`${server.url}/buy`)
    await page.getByText('sales begin again at midnight UTC').waitFor()
    assert.equal(await page.getByRole('button', { name: /^Spark/ }).isDisabled(), true)
  })

  test('an invoice that ran out says that nothing was charged, and a new one for the same plan can be had', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 40[24]/ })
    await page.goto(`${site.server.url}/buy#catch/spark`)
    const invoice = await invoiceOf(page)
    site.server.clock.advance(16 * 60_000)
    await page.getByRole('heading', { name: 'Invoice expired' }).waitFor()
    await page.getByText('Nothing was charged').waitFor()
    assert.equal(await page.title(), 'Invoice expired · Mayfly')
    assert.deepEqual(await seriousFaults(page), [])
    assert.deepEqual(await stored(page), [])
    await page.getByRole('button', { name: 'Get a new invoice' }).click()
    assert.notEqual(await invoiceOf(page), invoice)
    await page.getByText('Inbox · Spark · 24 hours').waitFor()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
  })

  test('a service that goes away while an invoice waits is reported, and what was paid meanwhile comes', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|ERR_FAILED/ })
    await page.goto(`${site.server.url}/buy#catch/spark`)
    const invoice = await invoiceOf(page)
    await page.route('**/api/**', (route) => route.abort())
    const away = page.getByText('The service does not answer. Trying again… Your payment is safe.')
    await away.waitFor()
    await page.reload()
    assert.equal(await invoiceOf(page), invoice, 'shown again without the service')
    await away.waitFor()
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
    await page.goto(`${site.server.url}/buy#catch/spark`)
    await page.getByText(/^\d+ min( \d+ s)? left$/).waitFor()
    await page.getByText('Waiting for payment…').waitFor()
  })

  test('an invoice whose time is over cannot be paid from the page, while it is being checked', async (t) => {
    const { page } = await site.visit(t)
    // Over by this clock, and not yet by the test's own, which the service goes by.
    await page.route('**/api/payments/**', async (route) => {
      // The quote itself comes in time: one that is over already is refused.
      if (route.request().method() !== 'GET') return route.continue()
      const answer = await route.fetch()
      await route.fulfill({ response: answer, headers: { ...answer.headers(), date: LATER } })
    })
    await page.goto(`${site.server.url}/buy#catch/spark`)
    await page.getByText('The invoice has expired. Checking for a payment…').waitFor()
    await page.locator('[inert]').getByRole('link', { name: 'Open in a wallet' }).waitFor()
    await page.getByRole('button', { name: 'Choose another plan' }).waitFor()
    // A payment may be under way still.
    const invoice = await invoiceOf(page)
    const polled = page.waitForResponse('**/api/payments/order_*')
    await page.reload()
    await polled
    await page.getByText('The invoice has expired. Checking for a payment…').waitFor()
    await site.server.pay(invoice)
    await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
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
