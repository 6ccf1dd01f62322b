import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { codeOf, everythingStored, invoiceOf, write } from '../support/pages.ts'

suite('a whisper whose tab is lost while it is paid', () => {
  const site = startSite()

  test('a reload shows the same invoice, and the payment brings code and suggested password, which are then wiped', async (t) => {
    const { page } = await site.visit(t, { viewport: NARROW })
    page.on('dialog', (dialog) => dialog.accept())
    await write(page, 'the third pot', site.server)
    await page.getByRole('button', { name: 'Suggest a password' }).click()
    const password = await page.getByLabel('Password (optional)').inputValue()
    await page.getByRole('button', { name: /^Spark/ }).click()
    const invoice = await invoiceOf(page)
    assert.doesNotMatch(await everythingStored(page), /third pot/, 'the text is stored nowhere')
    await page.reload()
    assert.equal(await invoiceOf(page), invoice)
    await page.getByText('Secret · Spark · 24 hours').waitFor()
    await site.server.pay(invoice)
    const code = await codeOf(page)
    await page.reload()
    assert.equal(await codeOf(page), code, 'the code was not taken, so it is not lost')
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('button', { name: 'Copy the code' }).click()
    await page.getByText('Copy the password too.').waitFor()
    assert.equal(await page.getByRole('group', { name: 'The password' }).innerText(), password)
    assert.notEqual(await everythingStored(page), '')
    await page.getByRole('button', { name: 'Copy the password' }).click()
    await page.getByText('You have everything.').waitFor()
    assert.equal(await everythingStored(page), '', 'wiped')
    assert.equal(await textOf(code, password), 'the third pot')
    await page.reload()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
  })

  test('a tab that is lost is paid meanwhile, and its code comes in another tab', async (t) => {
    const { page, context } = await site.visit(t)
    await write(page, 'kept', site.server)
    await page.getByLabel('Password (optional)').fill('typed by hand')
    await page.getByRole('button', { name: /^Spark/ }).click()
    const invoice = await invoiceOf(page)
    assert.doesNotMatch(
      await everythingStored(page),
      /typed by hand/,
      'nor is a password that was typed',
    )
    page.on('dialog', (dialog) => dialog.accept())
    await page.close()
    await site.server.pay(invoice)
    // Another tab, as when a wallet opened the payment in a browser of its own.
    const back = await context.newPage()
    await back.goto(`${site.server.url}/whisper`)
    await back.getByText('You have an unfinished purchase: Secret · Spark').waitFor()
    await back.getByRole('button', { name: 'Continue' }).click()
    const code = await codeOf(back)
    await back.getByText('The password is the one that you typed.').waitFor()
    assert.equal(await textOf(code, 'typed by hand'), 'kept')
    await back.getByRole('button', { name: 'Copy the code' }).click()
    await back.getByText('You have everything.').waitFor()
    assert.equal(await everythingStored(back), '')
  })

  test('a secret that no invoice came of leaves nothing in the browser', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|ERR_FAILED/ })
    page.on('dialog', (dialog) => dialog.accept())
    await page.goto(`${site.server.url}/whisper`)
    await page.route('**/api/payments/whisper', (route) => route.abort())
    await page.getByLabel('Text', { exact: true }).fill('a secret')
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByText('The service does not answer. Your data and payments are safe').waitFor()
    assert.equal(await everythingStored(page), '')
    await page.reload()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
  })

  test('an invoice that expired is asked for anew while the bytes are here, and after a reload the form is shown', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 40[24]/ })
    page.on('dialog', (dialog) => dialog.accept())
    await write(page, 'patience', site.server)
    await page.getByRole('button', { name: /^Spark/ }).click()
    const first = await invoiceOf(page)
    site.server.clock.advance(16 * 60_000)
    await page.getByRole('heading', { name: 'Invoice expired' }).waitFor()
    await page.getByRole('button', { name: 'Get a new invoice' }).click()
    const second = await invoiceOf(page)
    assert.notEqual(second, first)
    await page.reload()
    assert.equal(await invoiceOf(page), second)
    site.server.clock.advance(16 * 60_000)
    await page.getByRole('heading', { name: 'Invoice expired' }).waitFor()
    assert.equal(await everythingStored(page), '')
    await page.getByRole('button', { name: 'Write it again' }).click()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
  })

  test('a draft is not left without a question, and an empty form is', async (t) => {
    const { page } = await site.visit(t)
    const asked: string[] = []
    page.on('dialog', (dialog) => {
      asked.push(dialog.type())
      return dialog.dismiss()
    })
    await page.goto(`${site.server.url}/whisper`)
    await page.getByRole('link', { name: 'Docs' }).click()
    await page.goBack()
    assert.deepEqual(asked, [])
    await page.getByLabel('Text', { exact: true }).fill('half a thought')
    await page.getByRole('link', { name: 'Docs' }).click()
    await page.waitForFunction(() => document.querySelector('textarea')?.value === 'half a thought')
    assert.deepEqual(asked, ['beforeunload'])
    assert.match(page.url(), /\/whisper$/)
  })

  async function textOf(code: string, password?: string): Promise<string> {
    const { data } = await site.server.mayfly.readWhisper(code, password)
    return Buffer.from(data).toString()
  }
})
