import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { allFaults, NARROW, startSite } from '../support/browser.ts'
import { anInbox } from '../support/catch.ts'
import { openLive, pressInKeyMenu, visitLive } from '../support/pages.ts'
import { aMonitor, live } from '../support/pulse.ts'

const MINUTE = 60_000

suite('what a monitor can do besides', () => {
  const site = startSite()

  test('the switch id is made, shown again as it is, and retired after a question', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await visitLive(site, t, monitor, { viewport: NARROW })
    const make = page.getByRole('button', { name: 'Show the switch id' })
    await make.click()
    const shown = page.getByRole('group', { name: 'the switch id' })
    const first = await shown.innerText()
    assert.equal(first, (await site.server.mayfly.pulse(monitor).makeSwitch()).switchId)
    assert.deepEqual(await allFaults(page), [])
    await page.getByRole('button', { name: 'Retire it' }).click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    assert.equal(await shown.innerText(), first)
    await page.getByRole('button', { name: 'Retire it' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Retire it' }).click()
    await page.getByText('The switch is retired.').waitFor()
    await make.click()
    assert.notEqual(await shown.innerText(), first, 'another one is made')
  })

  test('a failed run is told with its code and its duration, until one succeeds', async (t) => {
    const monitor = await aMonitor(site.server)
    const job = site.server.mayfly.pulse(monitor)
    const { page } = await visitLive(site, t, monitor)
    assert.equal(await page.getByText('Last run', { exact: true }).isVisible(), false)
    await job.start()
    await page.getByText('1 running', { exact: true }).waitFor()
    await live(site.server, MINUTE / 2)
    await job.exit(3)
    await page.getByText('The last run failed with exit code 3.').waitFor()
    await page
      .locator('.facts')
      .getByText(/^Failed with exit code 3 after \d+ s$/)
      .waitFor()
    assert.deepEqual(await allFaults(page), [])
    await job.exit(0)
    await page.getByText('Pings are arriving on time.').waitFor()
    await page.locator('.facts').getByText('Succeeded').waitFor()
  })

  test('a time in which the service was unreachable is logged, and makes nothing late', async (t) => {
    const monitor = await aMonitor(site.server)
    await site.server.mayfly.pulse(monitor).ping()
    site.server.clock.advance(60 * MINUTE)
    await site.server.mayfly.pulse(monitor).ping()
    const { page } = await visitLive(site, t, monitor, { viewport: NARROW })
    await page.getByText(/The service was unreachable for /).waitFor()
    assert.equal(await page.locator('.day .late').count(), 0)
    await page.getByText('Our outages are excluded.').waitFor()
    assert.deepEqual(await allFaults(page), [])
  })

  test('a schedule replaces the interval, the set-up follows it, and the interval is a choice away', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await visitLive(site, t, monitor, {
      viewport: NARROW,
      timezoneId: 'Europe/Berlin',
      expected: /status of 400/,
    })
    const line = page.getByRole('group', { name: 'the line of crontab' })
    const fields = page.getByLabel('Minute, hour, day, month, weekday')
    const save = page.getByRole('button', { name: 'Save', exact: true })
    await page.getByRole('button', { name: 'By a schedule' }).click()
    assert.equal(await page.getByLabel('Time zone').inputValue(), 'Europe/Berlin', 'its own')
    await fields.fill('0 3 31 2 *')
    await save.click()
    await page.getByText('The service refused this schedule.').waitFor()
    await fields.fill(' 0 3 * * 1-5 ')
    await page.getByLabel('Time zone').fill('Europe/Atlantis')
    await save.click()
    await page.getByText('Enter a time zone of the IANA database').waitFor()
    assert.deepEqual(await allFaults(page), [])
    await page.getByLabel('Time zone').fill('Europe/Paris')
    await page.getByLabel('Grace', { exact: true }).fill('15')
    await page.getByLabel('Grace: unit').selectOption('minutes')
    await save.click()
    await line.getByText(/^0 3 \* \* 1-5 /).waitFor()
    const set = { cron: '0 3 * * 1-5', timeZone: 'Europe/Paris', graceSeconds: 900 }
    const owner = site.server.mayfly.pulse(monitor)
    assert.deepEqual((await owner.status()).schedule, set)
    await page.reload()
    assert.equal(await fields.inputValue(), '0 3 * * 1-5')
    await page.getByRole('button', { name: 'At an interval' }).click()
    await save.click()
    await line.getByText(/^\* \* \* \* \* /).waitFor()
    assert.equal((await owner.status()).schedule, null)
  })

  test('the ping token is replaced after a question, shown in the line of curl, and kept where the old one was', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await site.visit(t, { viewport: NARROW })
    page.on('dialog', (dialog) => dialog.accept())
    await openLive(page, monitor, site.server)
    await pressInKeyMenu(page, 'Save in this browser')
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

  test('alerts are added beside the state and tested, their secret is shown once, and each is removed by itself', async (t) => {
    const monitor = await aMonitor(site.server)
    const inbox = await anInbox(site.server)
    const { page } = await visitLive(site, t, monitor, {
      viewport: NARROW,
      expected: /status of 400/,
    })
    await page.getByText('Nobody is alerted when the monitor is late.').waitFor()
    const add = page.getByRole('button', { name: 'Add an alert' })
    await add.click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Address').fill('http://example.com/')
    await dialog.getByRole('button', { name: 'Save and test' }).click()
    await dialog.getByText('Use a public https:// address.').waitFor()
    assert.deepEqual(await allFaults(page), [], 'the form')
    await dialog.getByLabel('Kind').selectOption('inbox')
    await dialog.getByLabel('Inbox', { exact: true }).fill(inbox.publicId)
    await dialog.getByLabel('Its ingest token').fill(inbox.ingestToken)
    await dialog.getByRole('button', { name: 'Save and test' }).click()
    await page.getByText('The test: arrived.').waitFor()
    await page.getByText('An inbox here · active').waitFor()
    const secret = page.getByRole('group', { name: `the secret of ${inbox.publicId}` })
    assert.match(await secret.innerText(), /^whsec_/)
    assert.deepEqual(await allFaults(page), [], 'the secret')
    await page.getByRole('button', { name: 'Refresh' }).click()
    await secret.waitFor({ state: 'detached' })
    await page.getByText(/^Sent in the last 24 hours: \d+$/).click()
    assert.deepEqual(await allFaults(page), [], 'what was sent')
    await page.getByRole('button', { name: `Remove ${inbox.publicId}` }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove it' }).click()
    await page.getByText('Nobody is alerted when the monitor is late.').waitFor()
    assert.deepEqual((await site.server.mayfly.pulse(monitor).alerts()).destinations, [])
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    )
    assert.doesNotMatch(kept, /whsec_|catch_/)
  })

  test('the log is empty at first, then tells every entry, and grows by the keyboard', async (t) => {
    const monitor = await aMonitor(site.server)
    const job = site.server.mayfly.pulse(monitor)
    const { page } = await visitLive(site, t, monitor, { viewport: NARROW })
    const card = page.getByRole('region', { name: 'History and uptime' })
    await card.getByText('Nothing has happened yet. The first ping begins the history.').waitFor()
    assert.deepEqual(await allFaults(page), [])
    for (let i = 0; i < 70; i++) await job.ping()
    await live(site.server, MINUTE / 2)
    await job.start()
    await job.exit(3)
    await card.getByText(/Failed with exit code 3/).waitFor()
    await card.getByText(/Late since then: the last run had failed/).waitFor()
    const entries = card.getByRole('listitem')
    assert.equal(await entries.count(), 60)
    await card.getByRole('button', { name: 'Show older' }).focus()
    await page.keyboard.press('Enter')
    await entries.nth(71).waitFor({ state: 'attached' })
    assert.equal(await card.getByRole('button', { name: 'Show older' }).count(), 0)
    assert.deepEqual(await allFaults(page), [])
  })

  test('a monitor whose news are refused says why, and connects again', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await visitLive(site, t, monitor, { expected: /status of 401/ })
    await page.route('**/stream', (route) =>
      route.fulfill({ status: 401, json: { error: 'unauthorized' } }),
    )
    await page.reload()
    await page.getByText('This key does not fit.').waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0)
  })
})
