import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { anInbox } from '../support/catch.ts'
import {
  aSecret,
  codeOf,
  download,
  everythingStored,
  invoiceOf,
  openKey,
  write,
} from '../support/pages.ts'
import { aMonitor, live } from '../support/pulse.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000

suite('a whisper that tells when it is read', () => {
  const site = startSite()

  test('the receipt is asked for by a click, kept without the key, and says when it was read', async (t) => {
    const { page } = await site.visit(t, { viewport: NARROW })
    page.on('dialog', (dialog) => dialog.accept())
    await page.goto(`${site.server.url}/whisper#spark`)
    await page
      .getByRole('button', { name: /^Spark/ })
      .and(page.locator('[aria-current="true"]'))
      .waitFor()
    await page.getByLabel('Text', { exact: true }).fill('who reads this?')
    await page.getByLabel('How often it can be read').fill('2')
    await page.getByText('More: receipt, opening time, switch').click()
    await page.getByLabel('With a receipt').check()
    assert.deepEqual(await seriousFaults(page), [], 'the form')
    const sent = page.waitForRequest('**/api/payments/whisper')
    await page.getByRole('button', { name: /^Spark/ }).click()
    assert.equal((await sent).headers()['x-whisper-receipt'], 'on')
    const invoice = await invoiceOf(page)
    await page.reload()
    assert.equal(await invoiceOf(page), invoice)
    await site.server.pay(invoice)
    const code = await codeOf(page)
    // Its use ends the repeats of the order, and takes nothing away that was not taken yet.
    await page.getByRole('button', { name: 'Open receipt' }).click()
    await page.getByRole('heading', { name: 'Not read yet' }).waitFor()
    await page.goto(`${site.server.url}/whisper`)
    assert.equal(await codeOf(page), code)
    await page.getByRole('button', { name: 'Copy the code' }).click()
    await page.getByText('Save the receipt too.').waitFor()
    assert.match(
      await everythingStored(page),
      /mayfly\.unfinished/,
      'the receipt could still be lost',
    )
    await page.getByRole('button', { name: 'Save the receipt' }).click()
    await page.getByText('You have everything.').waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'the code')
    const [key = ''] = code.split(':').slice(4)
    assert.doesNotMatch(await everythingStored(page), new RegExp(`${key}|mayfly\\.unfinished`))

    await page.getByRole('button', { name: 'Open receipt' }).click()
    await page.getByRole('heading', { name: 'Not read yet' }).waitFor()
    await page.getByText('0 of 2', { exact: true }).waitFor()
    assert.equal(new URL(page.url()).pathname, '/receipt')
    await site.server.mayfly.readWhisper(code)
    // It updates itself.
    await page.getByText('1 of 2', { exact: true }).waitFor({ timeout: 30_000 })
    const reads = page.getByRole('list', { name: 'The reads, newest first' }).getByRole('listitem')
    assert.equal(await reads.count(), 1)
    assert.match(await reads.innerText(), /^\d+ \w+ \d{4}, \d\d:\d\d \w+$/)
    assert.deepEqual(await seriousFaults(page), [], 'the receipt')

    await page.goto(site.server.url)
    await page.getByText(/^Secret · Spark · until /).waitFor()
    await page.getByRole('button', { name: 'Open Secret 1' }).click()
    await page.getByRole('button', { name: 'Destroy the secret' }).click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    // The clock of the page is behind that of the service, and an end is an end all the same.
    await page.clock.setFixedTime(Date.now())
    await page.getByRole('button', { name: 'Destroy the secret' }).click()
    await page.getByRole('button', { name: 'Destroy it', exact: true }).click()
    await page.getByRole('heading', { name: 'Destroyed' }).waitFor()
    await page.getByText(/^Ended /).waitFor()
    await assert.rejects(site.server.mayfly.readWhisper(code), { phrase: 'not found' })
    assert.equal(await page.getByRole('button', { name: 'Destroy the secret' }).count(), 0)
    assert.doesNotMatch(page.url(), /whisper_/)
  })

  test('the receipt opens from the file with the code, and the code is not stored', async (t) => {
    const { page } = await site.visit(t)
    await write(page, 'in a file', site.server)
    await page.getByText('More: receipt, opening time, switch').click()
    await page.getByLabel('With a receipt').check()
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await codeOf(page)
    const file = await download(page, 'Download')
    await page.getByText('You have everything.').waitFor()
    assert.equal(await everythingStored(page), '', 'the file has all of it')
    const text = await readFile(await file.path(), 'utf8')
    await page.goto(`${site.server.url}/receipt`)
    await page.getByLabel('Or paste the key').fill(text)
    await page.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByRole('heading', { name: 'Not read yet' }).waitFor()
    assert.doesNotMatch(await everythingStored(page), /mayfly-whisper/)
  })

  test('who is told of a read is set on the receipt, until the whisper has ended', async (t) => {
    const inbox = await anInbox(site.server)
    const { code, ...capability } = await aSecret(site.server, {
      data: Buffer.from('told'),
      receipt: true,
      readLimit: 1,
    })
    const { page } = await site.visit(t, { viewport: NARROW })
    page.on('dialog', (dialog) => dialog.accept())
    await openKey(page, capability, site.server)
    await page.getByText('Nobody is alerted when the secret is read.').waitFor()
    await page.getByRole('button', { name: 'Add an alert' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Kind').selectOption('inbox')
    await dialog.getByLabel('Inbox', { exact: true }).fill(inbox.publicId)
    await dialog.getByLabel('Its ingest token').fill(inbox.ingestToken)
    await dialog.getByRole('button', { name: 'Save and test' }).click()
    await page.getByText('The test: arrived.').waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'the alerts')
    await site.server.mayfly.readWhisper(code)
    await refresh(page, 'Receipt')
    await page.getByRole('heading', { name: 'All reads used' }).waitFor()
    await refresh(page, 'Alerts')
    await page.getByText('Sent in the last 24 hours: 1').click()
    await page.getByText(/whisper\.read to catch_\w+: waits, next try /).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Add an alert' }).count(), 0)
    assert.deepEqual(await seriousFaults(page), [], 'the end')
  })

  test('a whisper without a receipt asks for none, and its file opens none', async (t) => {
    const { page } = await site.visit(t)
    await write(page, 'untold', site.server)
    const sent = page.waitForRequest('**/api/payments/whisper')
    await page.getByRole('button', { name: /^Spark/ }).click()
    assert.equal((await sent).headers()['x-whisper-receipt'], undefined)
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('button', { name: 'Copy message' }).waitFor()
    assert.equal(await page.getByRole('heading', { name: 'The receipt' }).count(), 0)
    const capability = await aSecret(site.server, { data: Buffer.from('untold') })
    page.on('dialog', (dialog) => dialog.accept())
    await openKey(page, capability, site.server)
    await page.getByText('This is not the key of a receipt.').waitFor()
  })

  test('a switch is bound to the order, tells its state on the receipt, and opens when the monitor falls silent', async (t) => {
    const monitor = await aMonitor(site.server, 'standard')
    const owner = site.server.mayfly.pulse(monitor)
    await owner.ping()
    const { switchId } = await owner.makeSwitch()
    const { page } = await site.visit(t, { expected: /status of 4(?:00|02)/ })
    page.on('dialog', (dialog) => dialog.accept())
    await write(page, 'if you read this', site.server)
    await page.getByText('More: receipt, opening time, switch').click()
    const field = page.getByLabel('Opens when a monitor falls silent')
    await field.fill('pulse_switch_0000000000000000000000')
    assert.ok(await page.getByLabel('With a receipt').isChecked())
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByText('This switch cannot be used').waitFor()
    await page.getByRole('button', { name: 'Choose a plan' }).click()
    await field.fill(` ${switchId} `)
    const sent = page.waitForRequest('**/api/payments/whisper')
    await page.getByRole('button', { name: /^Spark/ }).click()
    assert.equal((await sent).headers()['x-whisper-reveal-when'], switchId)
    const invoice = await invoiceOf(page)
    await page.reload()
    assert.equal(await invoiceOf(page), invoice)
    await site.server.pay(invoice)
    await page.getByText('can read it once after the monitor has fallen silent, until').waitFor()
    const code = await codeOf(page)
    const [publicId = ''] = code.split(':').slice(2)
    await page.getByRole('button', { name: 'Copy the code' }).click()
    await page.getByRole('button', { name: 'Save the receipt' }).click()
    await page.getByRole('button', { name: 'Open receipt' }).click()
    await page.getByText(/^Bound .*, and not armed yet/).waitFor()
    await live(site.server, MINUTE / 2)
    await owner.ping()
    await refresh(page, 'Receipt')
    await page.getByText(/^Armed since .* until /).waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'armed')

    const reader = await site.visit(t, { expected: /status of 425/ })
    await reader.page.goto(`${site.server.url}/read`)
    await reader.page.getByLabel('Share code').fill(code)
    await reader.page.getByRole('button', { name: 'Reveal it' }).click()
    await reader.page.getByText('or bound it to a switch').waitFor()
    assert.deepEqual(await seriousFaults(reader.page), [], 'shut')
    await live(site.server, 7 * MINUTE)
    // The owner has an hour to end a false alarm.
    await live(site.server, 60 * MINUTE)
    await until('the secret opens', async () => {
      // A machine that stood still meanwhile could not receive pings, and so moved the opening.
      await live(site.server, MINUTE)
      const { receiptToken } = await keptWhisper(page)
      const receipt = site.server.mayfly.whisperReceipt({ publicId, receiptToken })
      return (await receipt.status()).switch?.state === 'open'
    })
    await refresh(page, 'Receipt')
    await page.getByText(/^Open since /).waitFor()
    await reader.page.getByRole('button', { name: 'Reveal it' }).click()
    await reader.page.getByText('if you read this', { exact: true }).waitFor()
  })
})

const refresh = (page: Page, name: string): Promise<void> =>
  page.getByRole('region', { name }).getByRole('button', { name: 'Refresh' }).click()

/** The capability that this browser keeps. */
async function keptWhisper(page: Page): Promise<{ receiptToken: string }> {
  const kept = await page.evaluate(() => localStorage.getItem('mayfly.kept'))
  return JSON.parse(JSON.parse(kept ?? '[]')[0].text)
}
