import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { layoutShift, NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { pressInKeyMenu, pressInMenu, visitLive } from '../support/pages.ts'
import { freePort } from '../support/ports.ts'
import { aMonitor, live } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

suite('a monitor', () => {
  const site = startSite()

  test('a monitor shows a ping as it comes, and goes late by itself', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await visitLive(site, t, monitor)
    await page.getByText('Waiting', { exact: true }).waitFor()
    assert.equal(await page.title(), 'Waiting · Monitor · Mayfly')
    assert.deepEqual(await seriousFaults(page), [], 'waiting')

    await site.server.mayfly.pulse(monitor).ping()
    await page.getByText('Operational', { exact: true }).waitFor()
    await page.getByText('1 of 4,500', { exact: true }).waitFor()
    await page
      .getByText(/^in \d+ s$/)
      .first()
      .waitFor()
    await page.getByText('Nobody is alerted when the monitor is late.').waitFor()

    // A minute of interval and one of grace.
    await live(site.server, 3 * 60_000)
    await page.getByText('Late', { exact: true }).waitFor()
    await page.getByText('No ping came in time.').waitFor()
    await page.getByText('Late for', { exact: true }).waitFor()
    // Late is never said beside a time at which it will be.
    assert.equal(await page.getByText(/^in \d/).count(), 0)
    assert.equal(await page.getByText('Next ping', { exact: true }).count(), 0)
    assert.equal(await page.title(), 'Late · Monitor · Mayfly')
    assert.deepEqual(await seriousFaults(page), [], 'late')
    assert.ok((await layoutShift(page)) < 0.01)

    await site.server.mayfly.pulse(monitor).ping()
    await page.getByText('Operational', { exact: true }).waitFor()
    await page.getByText('2 recent pings: 0 failed.').waitFor()
    assert.doesNotMatch(page.url(), /pulse_/)
  })

  test('a monitor takes settings within their bounds, which the set-up follows, and shares its state until it is told not to', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await visitLive(site, t, monitor, {
      viewport: NARROW,
      expected: /status of 40[024]/,
    })
    await page.getByLabel('Name', { exact: true }).fill('Backup <b>of the shop</b>')
    const every = page.getByLabel('A ping every', { exact: true })
    const unit = page.getByLabel('A ping every: unit')
    assert.deepEqual([await every.inputValue(), await unit.inputValue()], ['1', '60'], 'a minute')
    for (const [amount, in_] of [
      ['19', 'seconds'],
      ['0.33', 'minutes'],
      ['7.5', 'days'],
      ['', 'hours'],
    ] as const) {
      await every.fill(amount)
      await unit.selectOption(in_)
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.getByText('A ping every, in seconds: 20 to 604800.').waitFor()
    }
    await every.fill('0.5')
    await unit.selectOption('hours')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('in seconds: ').waitFor({ state: 'detached' })
    await page.getByRole('group', { name: 'the line of crontab' }).getByText('*/30 ').waitFor()
    await every.fill('1')
    await page.getByLabel('Description').fill('Every hour')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('heading', { name: 'Backup <b>of the shop</b>' }).waitFor()
    await page.getByRole('group', { name: 'the line of crontab' }).getByText(/^0 \*/).waitFor()
    const owner = site.server.mayfly.pulse(monitor)
    assert.equal((await owner.status()).expectedIntervalSeconds, 3600)
    await owner.update({ expectedIntervalSeconds: 90 })
    const loop = page.getByRole('group', { name: 'the loop' })
    assert.match(await loop.innerText(), /^while :; do .*; sleep 90; done$/)
    await page.getByRole('tab', { name: 'Cron' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.getByText('OnUnitActiveSec=90s').waitFor()

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
    await page.getByRole('button', { name: 'Share the status' }).click()
    const next = page.getByRole('group', { name: 'the address of the status' })
    await next.waitFor()
    assert.notEqual(await next.innerText(), address, 'the old address is not shared again')
    await page.goto(address)
    await page.getByRole('heading', { name: 'Nothing is shared here' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'not shared')
  })

  test('a grace that only the plan forbids is refused with what the plan allows', async (t) => {
    const monitor = await aMonitor(site.server, 'long')
    const { page } = await visitLive(site, t, monitor, {
      viewport: NARROW,
      expected: /status of 400/,
    })
    await page.getByLabel('Grace', { exact: true }).fill('1')
    await page.getByLabel('Grace: unit').selectOption('minutes')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Grace, in seconds: 300 to 604800.').waitFor()
  })

  test('the page of a monitor says when the connection is lost, and what is so when it is back', async (t) => {
    const server = await startServer(t, { MAYFLY_PORT: String(await freePort()) })
    const monitor = await aMonitor(server)
    await server.mayfly.pulse(monitor).update({ publicStatusEnabled: true })
    const { publicStatusId } = await server.mayfly.pulse(monitor).status()
    const expected = /ERR_(?:CONNECTION|INCOMPLETE|EMPTY)/
    const { page } = await visitLive(site, t, monitor, { server, expected })
    const stranger = await site.visit(t, { expected })
    await stranger.page.goto(`${server.url}/status/${publicStatusId}`)
    await stranger.page.getByText(/^As of .*\.$/).waitFor()
    await server.stop()
    await page.getByText('Connection lost. Trying again…').waitFor()
    await stranger.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    const card = stranger.page.locator('[data-stale]')
    await card.waitFor()
    await stranger.page
      .getByText(
        /^The service does not answer\. Trying again… This is the last known state, as of /,
      )
      .waitFor()
    assert.match(await stranger.page.title(), /^No connection · Waiting/)
    assert.deepEqual(await seriousFaults(stranger.page), [], 'stale')
    // Neither the colour nor the mark says any more that all is well.
    const quiet = await stranger.page.locator('#age').evaluate((age) => getComputedStyle(age).color)
    for (const { locator } of [
      { locator: card.locator('.state') },
      { locator: page.locator('.monitor-state .state') },
    ]) {
      assert.equal(await locator.evaluate((state) => getComputedStyle(state).color), quiet)
      const mark = (state: Element): string => getComputedStyle(state, '::before').borderTopStyle
      assert.equal(await locator.evaluate(mark), 'dashed')
    }
    await server.restart()
    await server.mayfly.pulse(monitor).ping()
    // The pause between two tries is half a minute at most.
    await page.getByText('Operational', { exact: true }).waitFor({ timeout: 60_000 })
    await page.getByText('Live', { exact: true }).waitFor()
    await stranger.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await stranger.page.getByText('Operational', { exact: true }).waitFor()
    await card.waitFor({ state: 'detached' })
    assert.match(await stranger.page.title(), /^Operational/)
  })

  test('a status page that a busy service refuses says so at once, counts down, and shows the state then', async (t) => {
    const job = site.server.mayfly.pulse(await aMonitor(site.server))
    const { publicStatusId } = await job.update({ publicStatusEnabled: true })
    const { page } = await site.visit(t, { expected: /status of 429/ })
    await page.route('**/api/pulse/public/**', (route) =>
      route.fulfill({
        status: 429,
        headers: { 'retry-after': '3' },
        json: { error: 'rate limited' },
      }),
    )
    await page.goto(`${site.server.url}/status/${publicStatusId}`)
    await page.getByText(/^Too many requests\. Trying again in \d s\./).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByText('Waiting', { exact: true }).waitFor()
    await page.getByText(/^As of /).waitFor()
  })

  test('the first ping is sent with a click, and the title of the tab follows', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await visitLive(site, t, monitor)
    // The answer comes after the live status, and does not take back what that announced.
    const shown = page.getByText('Operational', { exact: true })
    await page.route('**/p/*', async (route) => {
      const response = await route.fetch()
      await shown.waitFor()
      await route.fulfill({ response })
    })
    const answered = page.waitForResponse('**/p/*')
    await page.getByRole('button', { name: 'Ping now' }).click()
    await (await answered).finished()
    assert.equal(await page.locator('#announcer').innerText(), 'The monitor is operational.')
    assert.equal(await page.title(), 'Operational · Monitor · Mayfly')
    await page.getByRole('button', { name: 'Ping now' }).click()
    await page.getByText('2 of 4,500', { exact: true }).waitFor()
    // When it is closed, its name is gone from the tab.
    await pressInKeyMenu(page, 'Close')
    await page.getByRole('heading', { name: 'Open a monitor' }).waitFor()
    await until(
      'the tab has its first title',
      async () => (await page.title()) === 'Monitors · Mayfly',
    )
  })

  test('a failed ping is drawn and logged as one, and one uptime is told', async (t) => {
    const monitor = await aMonitor(site.server)
    const job = site.server.mayfly.pulse(monitor)
    for (const code of [0, 3, 0, 3]) {
      await live(site.server, 30_000)
      await job.exit(code)
    }
    await live(site.server, 30_000)
    const { page } = await visitLive(site, t, monitor)
    const card = page.getByRole('region', { name: 'History and uptime' })
    await card.getByText('4 recent pings: 2 failed.').waitFor()
    assert.equal(await card.locator('.run.failed').count(), 2)
    const { uptime } = await job.history({ limit: 1 })
    const told = Number.parseFloat(await card.locator('.uptime').innerText())
    // Time goes on between the two.
    assert.ok(Math.abs(told - (uptime.last24Hours ?? 0) * 100) < 2, `${told} %`)
    assert.ok(told < 90)
    assert.equal(await page.getByText(/\d %/).count(), 1, 'one figure from one source')
    await page.getByText('The last run failed with exit code 3.').waitFor()
    assert.equal(
      await card.getByRole('listitem').filter({ hasText: 'Failed with exit code 3' }).count(),
      2,
    )
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('a description that turns text around is spelled out for its owner, too', async (t) => {
    const monitor = await aMonitor(site.server)
    await site.server.mayfly.pulse(monitor).update({
      name: 'backup',
      description: 'paid\u202eton',
      publicStatusEnabled: true,
    })
    const { page } = await visitLive(site, t, monitor)
    await page.getByText('paid‹U+202E›ton', { exact: true }).waitFor()
    assert.equal(await page.title(), 'Waiting · backup · Mayfly')
    const { publicStatusId } = await site.server.mayfly.pulse(monitor).status()
    await page.goto(`${site.server.url}/status/${publicStatusId}`)
    await page.getByText('paid‹U+202E›ton', { exact: true }).waitFor()
    assert.equal(await page.title(), 'Waiting · backup')
  })

  test('a monitor is destroyed when the person is sure', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await visitLive(site, t, monitor, { expected: /status of 40[24]/ })
    await pressInMenu(page, 'Destroy the monitor')
    await page.getByRole('button', { name: 'Destroy it' }).click()
    await page.getByRole('heading', { name: 'Open a monitor' }).waitFor()
    await assert.rejects(site.server.mayfly.pulse(monitor).status(), { phrase: 'not found' })
  })
})
