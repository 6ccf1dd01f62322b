import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { anInbox } from '../support/catch.ts'
import { openLive, pressInKeyMenu, visitLive } from '../support/pages.ts'
import { aMonitor } from '../support/pulse.ts'
import { resumeAt, suspendAt } from '../support/takedown.ts'
import { until } from '../support/until.ts'

const DAY = 24 * 60 * 60 * 1000

suite('keeping what was bought', () => {
  const site = startSite()

  test('a kept inbox has a name, its plan and its end, and its owner may rename it', async (t) => {
    const [first, second] = [await anInbox(site.server), await anInbox(site.server)]
    const { page } = await site.visit(t, { viewport: NARROW })
    for (const inbox of [first, second]) {
      await openLive(page, inbox, site.server)
      await pressInKeyMenu(page, 'Save in this browser')
      await page.getByRole('heading', { level: 1, name: /^Inbox \d$/ }).waitFor()
      await pressInKeyMenu(page, 'Close')
    }
    await page.getByRole('button', { name: 'Open Inbox 1' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill(' Shop \u202e hooks ')
    assert.deepEqual(await seriousFaults(page), [], 'renaming')
    await page.keyboard.press('Enter')
    await page.getByText('Shop ‹U+202E› hooks', { exact: true }).waitFor()
    await page.reload()
    await page.getByText('Shop ‹U+202E› hooks', { exact: true }).waitFor()
    await pressInKeyMenu(page, 'Close')
    await page
      .getByText(/^Inbox · Spark · until /)
      .first()
      .waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'the list')
    await page.getByRole('button', { name: 'Open Inbox 2' }).waitFor()
  })

  test('a browser whose clock is days ahead loses no key, and an extension by anybody moves the kept end', async (t) => {
    const [first, second] = [await anInbox(site.server), await anInbox(site.server)]
    const { page } = await site.visit(t)
    await page.addInitScript(() => {
      const now = Date.now
      Date.now = () => now() + 40 * 86_400_000
    })
    for (const inbox of [first, second]) {
      await openLive(page, inbox, site.server)
      await pressInKeyMenu(page, 'Save in this browser')
      await pressInKeyMenu(page, 'Close')
    }
    await page.goto(site.server.url)
    await page.getByRole('button', { name: 'Open Inbox 1' }).waitFor()
    await page.getByRole('button', { name: 'Open Inbox 2' }).waitFor()
    const end = async () => {
      const entries = JSON.parse(
        (await page.evaluate(() => localStorage.getItem('mayfly.kept'))) ?? '[]',
      ) as { text: string }[]
      const texts = entries.map(({ text }) => JSON.parse(text))
      return texts.find(({ publicId }) => publicId === first.publicId).expiresAt as string
    }
    assert.equal(await end(), first.expiresAt)
    await site.server.mayfly.extend(first, {
      planId: 'spark',
      onInvoice: ({ bolt11 }) => site.server.pay(bolt11),
    })
    await page.reload()
    await until('the new end is noted', async () => (await end()) > first.expiresAt)
  })

  test('what is destroyed elsewhere is closed where it is open, and its key is called gone until its person removes it', async (t) => {
    const inbox = await anInbox(site.server)
    const { page } = await visitLive(site, t, inbox, { expected: /status of 40[14]/ })
    await pressInKeyMenu(page, 'Save in this browser')
    await site.server.mayfly.catch(inbox).destroy()
    await page.getByText('The inbox was destroyed, or the operator has suspended it.').waitFor()
    await page.goto(site.server.url)
    await page.getByText('The key opens nothing now').waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('button', { name: 'Remove Inbox 1' }).click()
    await page.getByText('The key opens nothing now').waitFor({ state: 'detached' })
    assert.equal(await page.evaluate(() => localStorage.length), 0)
  })

  test('a monitor that the operator suspends is closed, is there again when it is resumed, and has expired at its end', async (t) => {
    const monitor = await aMonitor(site.server)
    const { page } = await visitLive(site, t, monitor, { expected: /status of 40[14]/ })
    await pressInKeyMenu(page, 'Save in this browser')
    await suspendAt(site.server, monitor.publicId)
    await page.getByText('The monitor was destroyed, or the operator has suspended it.').waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await resumeAt(site.server, monitor.publicId)
    await page.reload()
    await page.getByRole('button', { name: 'Open Monitor 1' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    site.server.clock.advance(14 * DAY)
    await page.reload()
    await page.getByText('The monitor has expired, and the service has deleted it.').waitFor()
    await page.getByText('Expired', { exact: true }).waitFor()
  })
})
