import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import { formatCapability } from '../../src/client/index.ts'
import { NARROW, seriousFaults, startSite } from '../support/browser.ts'

suite('keeping what was bought', () => {
  const site = startSite()

  test('a kept inbox has a name, its plan and its end, and its owner may rename it', async (t) => {
    const [first, second] = [await buyInbox(), await buyInbox()]
    const { page } = await site.visit(t, { viewport: NARROW })
    for (const inbox of [first, second]) {
      await page.goto(`${site.server.url}/catch`)
      await page.getByLabel('Or paste the capability').fill(fileOf(inbox))
      await page.getByRole('button', { name: 'Open', exact: true }).click()
      await page.getByRole('button', { name: 'Keep in this browser' }).click()
      await page.getByText('Spark · kept here').waitFor()
      await page.getByRole('button', { name: 'Open another' }).click()
    }
    await page.getByRole('button', { name: 'Open Inbox 1' }).click()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill(' Shop \u202e hooks ')
    assert.deepEqual(await seriousFaults(page), [], 'renaming')
    await page.keyboard.press('Enter')
    await page.getByText('Shop ‹U+202E› hooks', { exact: true }).waitFor()
    await page.reload()
    await page.getByText('Shop ‹U+202E› hooks', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Open another' }).click()
    await page
      .getByText(/^Spark · ends /)
      .first()
      .waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'the list')
    await page.getByRole('button', { name: 'Open Inbox 2' }).waitFor()
  })

  test('what an earlier version kept without a name is still there', async (t) => {
    const inbox = await buyInbox()
    const { page } = await site.visit(t)
    await page.goto(`${site.server.url}/catch`)
    await page.evaluate(
      (text) => localStorage.setItem('mayfly.kept', JSON.stringify([text, 7, null, 'no'])),
      formatCapability({ capability: inbox, baseUrl: site.server.url }),
    )
    await page.reload()
    const name = `Inbox …${inbox.publicId.slice(-4)}`
    await page.getByRole('button', { name: `Open ${name}` }).click()
    await page.getByText(name, { exact: true }).waitFor()
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
