import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { formatCapability } from '../../src/client/index.ts'
import { NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { pressInKeyMenu } from '../support/inbox-page.ts'
import { until } from '../support/until.ts'

suite('keeping what was bought', () => {
  const site = startSite()

  test('a kept inbox has a name, its plan and its end, and its owner may rename it', async (t) => {
    const [first, second] = [await buyInbox(), await buyInbox()]
    const { page } = await site.visit(t, { viewport: NARROW })
    for (const inbox of [first, second]) {
      await page.goto(`${site.server.url}/catch`)
      await page.getByLabel('Or paste the key').fill(fileOf(inbox))
      await page.getByRole('button', { name: 'Open', exact: true }).click()
      await page.getByText('Live', { exact: true }).waitFor()
      await pressInKeyMenu(page, 'Save in this browser')
      await page.getByRole('heading', { level: 1, name: /^Inbox \d$/ }).waitFor()
      await pressInKeyMenu(page, 'Close, and open another')
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
    await pressInKeyMenu(page, 'Close, and open another')
    await page
      .getByText(/^Inbox · Spark · until /)
      .first()
      .waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'the list')
    await page.getByRole('button', { name: 'Open Inbox 2' }).waitFor()
  })

  test('a browser whose clock is days ahead loses no key, and an extension by anybody moves the kept end', async (t) => {
    const [first, second] = [await buyInbox(), await buyInbox()]
    const { page } = await site.visit(t)
    await page.addInitScript(() => {
      const now = Date.now
      Date.now = () => now() + 40 * 86_400_000
    })
    for (const inbox of [first, second]) {
      await page.goto(`${site.server.url}/catch`)
      await page.getByLabel('Or paste the key').fill(fileOf(inbox))
      await page.getByRole('button', { name: 'Open', exact: true }).click()
      await page.getByText('Live', { exact: true }).waitFor()
      await pressInKeyMenu(page, 'Save in this browser')
      await pressInKeyMenu(page, 'Close, and open another')
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

  test('a key whose inbox is gone says so once the service did, and is removed by its person alone', async (t) => {
    const inbox = await buyInbox()
    const { page } = await site.visit(t, { expected: /status of 404/ })
    await page.goto(`${site.server.url}/catch`)
    await page.getByLabel('Or paste the key').fill(fileOf(inbox))
    await page.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    await pressInKeyMenu(page, 'Save in this browser')
    await site.server.mayfly.catch(inbox).destroy()
    await page.goto(site.server.url)
    await page.getByText('This inbox is gone').waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await page.reload()
    await page.getByRole('button', { name: 'Remove Inbox 1' }).click()
    await page.getByText('This inbox is gone').waitFor({ state: 'detached' })
    assert.equal(await page.evaluate(() => localStorage.length), 0)
  })

  function buyInbox(): Promise<CatchCapability> {
    return site.server.mayfly.buyCatch({
      planId: 'spark',
      idempotencyKey: randomUUID(),
      onInvoice: ({ bolt11 }) => site.server.pay(bolt11),
    })
  }

  function fileOf(capability: CatchCapability): string {
    return formatCapability({ capability, baseUrl: site.server.url, planId: 'spark' })
  }
})
