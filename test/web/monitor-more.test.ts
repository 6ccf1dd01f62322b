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

  test('a schedule replaces the interval, the line of crontab follows it, and the way back is offered', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await site.visit(t, {
      viewport: NARROW,
      timezoneId: 'Europe/Berlin',
      expected: /status of 400/,
    })
    await open(page, monitor)
    const line = page.getByRole('group', { name: 'the line of crontab' })
    const fields = page.getByLabel('Minute, hour, day, month, weekday')
    assert.equal(await page.getByLabel('Time zone').inputValue(), 'Europe/Berlin', 'its own')
    assert.equal(
      await page.getByRole('button', { name: 'Back to the interval' }).isVisible(),
      false,
    )
    await fields.fill('0 3 31 2 *')
    await page.getByRole('button', { name: 'Use the schedule' }).click()
    await page.getByText('The service refused this schedule.').waitFor()
    await fields.fill(' 0 3 * * 1-5 ')
    await page.getByLabel('Time zone').fill('Europe/Atlantis')
    await page.getByRole('button', { name: 'Use the schedule' }).click()
    await page.getByText('This is no time zone of the IANA database').waitFor()
    assert.deepEqual(await allFaults(page), [])
    await page.getByLabel('Time zone').fill('Europe/Paris')
    await page.getByLabel('Grace of a run', { exact: true }).fill('15')
    await page.getByRole('button', { name: 'Use the schedule' }).click()
    await line.getByText(/^0 3 \* \* 1-5 /).waitFor()
    await page.getByText('A ping is expected at each run of “0 3 * * 1-5”, Europe/Paris.').waitFor()
    const set = { cron: '0 3 * * 1-5', timeZone: 'Europe/Paris', graceSeconds: 900 }
    const owner = site.server.mayfly.pulse(monitor)
    assert.deepEqual((await owner.status()).schedule, set)
    await owner.ping()
    await page.getByText(/^Last ping: the first one, at /).waitFor()
    await page.reload()
    assert.equal(await fields.inputValue(), '0 3 * * 1-5')
    await page.getByRole('button', { name: 'Back to the interval' }).click()
    await line.getByText(/^\* \* \* \* \* /).waitFor()
    assert.equal((await owner.status()).schedule, null)
  })

  test('the ping token is replaced after a question, shown in the line of curl, and kept where the old one was', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await site.visit(t, { viewport: NARROW })
    page.on('dialog', (dialog) => dialog.accept())
    await open(page, monitor)
    await page.getByRole('button', { name: 'Keep in this browser' }).click()
    await page.getByRole('button', { name: 'Replace the ping token' }).click()
    assert.deepEqual(await allFaults(page), [], 'the question')
    await page.getByRole('dialog').getByRole('button', { name: 'Replace it' }).click()
    await page.getByText('The ping token is replaced. Give the new one to your jobs.').waitFor()
    // The toast is there before the page is made anew.
    const group = page.getByRole('group', { name: 'the file with the token' })
    const file = await group.filter({ hasNotText: monitor.pingToken }).innerText()
    const [pingToken = ''] = /pulse_ping_[0-9A-Za-z]{49}/.exec(file) ?? []
    assert.notEqual(pingToken, monitor.pingToken)
    const { publicId } = monitor
    await site.server.mayfly.pulse({ publicId, pingToken }).ping()
    await assert.rejects(site.server.mayfly.pulse(monitor).ping(), { phrase: 'not found' })
    const stores = await page.evaluate(() =>
      [localStorage, sessionStorage].map((one) => JSON.stringify(one)),
    )
    for (const stored of stores) {
      assert.ok(stored.includes(pingToken))
      assert.ok(!stored.includes(monitor.pingToken))
    }
    await page.reload()
    await page.getByText(pingToken).waitFor()
  })

  test('alerts are set and tested, their secret is shown once, and what was sent is listed', async (t) => {
    const monitor = await aMonitor(site.server)
    const inbox = await site.server.mayfly.buyCatch({
      planId: 'spark',
      onInvoice: ({ bolt11 }) => site.server.pay(bolt11),
    })
    const { page } = await site.visit(t, { viewport: NARROW, expected: /status of 400/ })
    await open(page, monitor)
    await page.getByText('Alerts: who is told when it is late').click()
    await page.getByText('Nobody is told yet.').waitFor()
    const first = page.getByRole('group', { name: 'Destination 1' })
    assert.equal(await page.getByRole('group', { name: 'Destination 2' }).isVisible(), false)
    await page.getByRole('button', { name: 'Save and test' }).click()
    await page.getByText('Give an address, or an inbox and its token.').waitFor()
    await first.getByLabel('Address').fill('http://example.com/')
    await page.getByRole('button', { name: 'Save and test' }).click()
    await page
      .getByText(/^Nothing was changed\. What is needed: an https URL of a public host/)
      .waitFor()
    await page.getByRole('group', { name: 'Destination 2' }).waitFor()
    assert.deepEqual(await allFaults(page), [], 'the form')
    await first.getByLabel('Format').selectOption('inbox')
    await first.getByLabel('Inbox').fill(inbox.publicId)
    await first.getByLabel('Its ingest token').fill(inbox.ingestToken)
    await page.getByRole('button', { name: 'Save and test' }).click()
    await page.getByText('The test arrived.').waitFor()
    await page.getByText('An inbox here · Is told').waitFor()
    const secret = page.getByRole('group', { name: `the secret of ${inbox.publicId}` })
    assert.match(await secret.innerText(), /^whsec_/)
    assert.deepEqual(await allFaults(page), [], 'the secret')
    await page.getByRole('button', { name: 'Look again' }).click()
    await secret.waitFor({ state: 'detached' })
    await page.getByText(/^Sent in the last 24 hours: \d+$/).click()
    assert.deepEqual(await allFaults(page), [], 'what was sent')
    await page.getByRole('button', { name: 'Tell nobody' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Tell nobody' }).click()
    await page.getByText('Nobody is told yet.').waitFor()
    assert.deepEqual((await site.server.mayfly.pulse(monitor).alerts()).destinations, [])
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    )
    assert.doesNotMatch(kept, /whsec_|catch_/)
  })

  test('the history is empty at first, then tells every entry and the uptime, and grows by the keyboard', async (t) => {
    const monitor = await aMonitor(site.server)
    const job = site.server.mayfly.pulse(monitor)
    const { page } = await site.visit(t, { viewport: NARROW })
    await open(page, monitor)
    await page.getByText('History: its whole life, and the uptime').click()
    const card = page.getByRole('region', { name: 'History' })
    await card.getByText('Nothing has happened yet. The first ping begins the history.').waitFor()
    assert.equal(await card.getByRole('list').isVisible(), false)
    assert.deepEqual(await allFaults(page), [])
    for (let i = 0; i < 60; i++) await job.ping()
    await live(site.server, MINUTE / 2)
    await job.start()
    await job.exit(3)
    await live(site.server, MINUTE / 2)
    await card.getByRole('button', { name: 'Look again' }).click()
    const entries = card.getByRole('listitem')
    await card.getByText(/^A run failed with exit code 3 after \d+ s, /).waitFor()
    await card.getByText(/^Late since .*: the last run had failed$/).waitFor()
    await card.getByText(/^\d+(\.\d+)? %$/).waitFor()
    assert.equal(await entries.count(), 50)
    const older = card.getByRole('button', { name: 'Show older' })
    await older.focus()
    await page.keyboard.press('Enter')
    await entries.nth(61).waitFor({ state: 'attached' })
    assert.equal(await entries.count(), 62)
    assert.equal(await older.isVisible(), false)
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'OL')
    assert.deepEqual(await allFaults(page), [])
    await job.ping()
    await card.getByRole('button', { name: 'Look again' }).click()
    await card.getByText(/^Late from .*, for .*: the last run had failed$/).waitFor()
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
