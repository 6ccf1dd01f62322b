import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { layoutShift, NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { temporaryFolder } from '../support/folder.ts'
import { aSecret, codeOf, download, stored, write } from '../support/pages.ts'

suite('a whisper', () => {
  const site = startSite()

  test('a file with a password goes from one person to another', async (t) => {
    const data = randomBytes(200_000)
    const writer = await site.visit(t)
    await writer.page.goto(`${site.server.url}/whisper`)
    await writer.page.getByRole('button', { name: 'File', exact: true }).click()
    await writer.page.getByLabel('File', { exact: true }).setInputFiles({
      name: 'plan.bin',
      mimeType: 'application/x-plan',
      buffer: data,
    })
    await writer.page.getByText('Too small: it holds 61.9 KiB, and this is 196 KiB.').waitFor()
    assert.ok(await writer.page.getByRole('button', { name: /^Spark/ }).isDisabled())
    await writer.page.getByLabel('How often it can be read').fill('2')
    await writer.page.getByLabel('Password (optional)').fill('correct horse')
    assert.deepEqual(await seriousFaults(writer.page), [], 'the form')
    await writer.page.getByRole('button', { name: /^Standard/ }).click()
    await writer.page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await writer.page.getByRole('heading', { name: 'Your secret is ready' }).waitFor()
    await writer.page.getByText('and the password can read it 2 times').waitFor()
    assert.deepEqual(await seriousFaults(writer.page), [], 'the code')
    const code = await codeOf(writer.page)
    assert.equal(
      await writer.page.getByRole('group', { name: 'The password' }).innerText(),
      'correct horse',
    )
    assert.deepEqual(
      await stored(writer.page),
      ['mayfly.unfinished', 'mayfly.paying'],
      'until the code is taken',
    )
    await expectNoSecretInAnyUrl(writer.page, code)
    assert.deepEqual(await stored(writer.page), [], 'neither text nor key nor code is stored')

    const typist = await site.visit(t)
    await typist.page.goto(`${site.server.url}/read`)
    await typist.page.getByLabel('Share code').pressSequentially(code)
    await typist.page.getByLabel('Password').waitFor()
    await typist.page.getByText('Revealing it uses one read').waitFor()
    assert.ok((await layoutShift(typist.page)) < 0.01)

    const reader = await site.visit(t, { viewport: NARROW })
    const asked = requestsOf(reader.page)
    await reader.page.goto(`${site.server.url}/read`)
    await reader.page.getByLabel('Share code').fill(`Here it is: ${code}\nSee you.`)
    assert.deepEqual(await seriousFaults(reader.page), [], 'the question')
    await reader.page.getByLabel('Password').fill('wrong')
    assert.deepEqual(
      asked.filter((path) => !path.startsWith('/assets/')),
      ['/read'],
      'nothing is fetched before the click',
    )
    await reader.page.getByRole('button', { name: 'Reveal it' }).click()
    await reader.page.getByText('Most likely the password is wrong.').waitFor()
    await reader.page.getByText('Trying again uses no other.').waitFor()
    assert.equal(await reader.page.getByText('Revealing it uses one read').count(), 0)
    assert.deepEqual(await seriousFaults(reader.page), [], 'a wrong password')
    const question = reader.page.waitForEvent('dialog').then((dialog) => dialog.dismiss())
    await reader.page.getByRole('link', { name: 'Docs' }).click()
    await question
    await reader.page.getByLabel('Share code').fill(code.slice(0, -':p'.length))
    await reader.page.getByRole('button', { name: 'Reveal it' }).click()
    await reader.page.getByText('The code is not whole or not right').waitFor()
    const other = await aSecret(site.server, { data: Buffer.from('another secret') })
    await reader.page.getByLabel('Share code').fill(other.code)
    await reader.page.getByRole('button', { name: 'Reveal it' }).click()
    await reader.page.getByText('Open the other code in a new tab').waitFor()
    await reader.page.getByLabel('Share code').fill(code)
    await reader.page.getByLabel('Password').fill('correct horse')
    await reader.page.getByRole('button', { name: 'Reveal it' }).click()
    await reader.page.getByRole('heading', { name: 'plan.bin' }).waitFor()
    const file = await download(reader.page, 'Download')
    assert.equal(file.suggestedFilename(), 'plan.bin')
    assert.deepEqual(await readFile(await file.path()), data)
    assert.equal(asked.filter((path) => path.startsWith('/w/')).length, 1, 'one read, three tries')
    assert.deepEqual(await stored(reader.page), [])
  })

  test('HTML of a stranger is shown as text, with its invisible characters written out', async (t) => {
    const text = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    const { code } = await aSecret(site.server, {
      data: Buffer.from(`${text}invoice\u202efdp.exe\u0000`),
      mediaType: 'text/html',
    })
    const { page } = await site.visit(t)
    await open(page, code)
    await page.getByRole('button', { name: 'Reveal it' }).click()
    const shown = await page.getByRole('group', { name: 'The text' }).innerText()
    assert.equal(shown, `${text}invoice‹U+202E›fdp.exe␀`)
    assert.equal(await page.title(), 'Read a secret · Mayfly')
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('nothing is spent before the reveal time, and the time is counted down', async (t) => {
    const { code } = await aSecret(site.server, {
      data: Buffer.from('good morning'),
      readLimit: 1,
      revealAt: new Date(site.server.now() + 3 * 3_600_000),
    })
    const { page } = await site.visit(t, { expected: /status of 4(?:25|04)/ })
    await open(page, code)
    await page.getByRole('button', { name: 'Reveal it' }).click()
    await page.getByText(/^(?:3 h 0|2 h 59) min$/).waitFor()
    await page.getByText('No read was used').waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    const asked = page.waitForResponse('**/w/*')
    await page.getByRole('button', { name: 'Reveal it' }).click()
    assert.equal((await asked).status(), 425)
    await page.getByText(/^(?:3 h 0|2 h 59) min$/).waitFor()
    site.server.clock.advance(3 * 3_600_000)
    await page.getByRole('button', { name: 'Reveal it' }).click()
    await page.getByText('good morning', { exact: true }).waitFor()

    await page.goto('about:blank')
    await open(page, code)
    await page.getByRole('button', { name: 'Reveal it' }).click()
    await page.getByText('its reads are used').waitFor()
  })

  test('what was pasted stays when it is no code, and the problem goes with its cause', async (t) => {
    const { code } = await aSecret(site.server, { data: Buffer.from('mended') })
    const { page } = await site.visit(t, { viewport: NARROW })
    await page.goto(`${site.server.url}/read`)
    const field = page.getByLabel('Share code')
    await field.fill(`Here it is: ${code.slice(0, -4)}`)
    await page.getByRole('button', { name: 'Reveal it' }).click()
    await page.getByText('This share code is not whole').waitFor()
    assert.equal(await field.inputValue(), `Here it is: ${code.slice(0, -4)}`)
    assert.deepEqual(await seriousFaults(page), [])
    await field.press('End')
    await field.pressSequentially(code.slice(-4, -3))
    await page.getByText('This share code is not whole').waitFor({ state: 'detached' })
    await field.pressSequentially(code.slice(-3))
    await page.getByRole('button', { name: 'Reveal it' }).click()
    await page.getByText('mended', { exact: true }).waitFor()
  })

  test('a plan that ends before the opening time is off and says why, and nothing is uploaded', async (t) => {
    const { page } = await site.visit(t)
    const asked = requestsOf(page)
    await write(page, 'later', site.server)
    const later = new Date(site.server.now() + 20 * 86_400_000).toISOString().slice(0, 16)
    await page.getByText('More: receipt, opening time, switch').click()
    await page.getByLabel(/^Opens at/).fill(later)
    await page.getByText('Too short: it ends after 24 hours').waitFor()
    await page.getByText('Too short: it ends after 7 days').waitFor()
    assert.ok(await page.getByRole('button', { name: /^Standard/ }).isDisabled())
    assert.ok(await page.getByRole('button', { name: /^Long/ }).isEnabled())
    assert.deepEqual(await seriousFaults(page), [], 'plans that are off')
    assert.equal(asked.filter((path) => path.startsWith('/api/payments')).length, 0)
  })

  test('one read is sold unless more are asked for, and the code comes as a QR code and in a message with times of both zones', async (t) => {
    const { page } = await site.visit(t, {
      timezoneId: 'Europe/Berlin',
      expected: /status of 40[24]/,
    })
    await page.goto(`${site.server.url}/whisper`)
    await page.getByText('up to 7.8 MiB').waitFor()
    await page.getByLabel('Text', { exact: true }).fill('just once')
    await page.getByRole('button', { name: /^Standard/ }).click()
    await page.getByText('can be read once', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByText('Anyone with the code can read it once').waitFor()
    assert.equal(await page.getByRole('img', { name: /QR/ }).count(), 0, 'drawn when asked for')
    const message = await page.getByRole('group', { name: 'The message' }).innerText()
    assert.match(message, /until \d+ \w+ \d{4}, \d\d:\d\d UTC \(\d+ \w+ \d{4}, \d\d:\d\d CES?T\)\./)
    assert.match(message, /\/read and paste this code:\n\nmayfly-whisper:1:/)
    const code = await codeOf(page)
    await page.getByText('Show the code as a QR code').click()
    await page.getByRole('img', { name: 'QR code of the share code' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('button', { name: 'Write another' }).click()
    await page.getByRole('heading', { name: 'Leave without the code?' }).waitFor()
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    await page.getByRole('button', { name: 'Copy the code' }).click()
    await page.getByRole('button', { name: 'Write another' }).click()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
    assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), '')
    const once = await site.server.mayfly.readWhisper(code)
    assert.equal(Buffer.from(once.data).toString(), 'just once')
    await assert.rejects(site.server.mayfly.readWhisper(code), /not found/)
  })

  test('the largest file that is sold passes through the page', async (t) => {
    // Padded to the plan's 8 MiB, or nearly.
    const data = randomBytes(8_257_000)
    const { page } = await site.visit(t)
    await page.goto(`${site.server.url}/whisper`)
    await page.getByRole('button', { name: 'File', exact: true }).click()
    const input = page.getByLabel('File', { exact: true })
    await input.setInputFiles(await aFile(t, 'a.bin', Buffer.alloc(9_000_000)))
    await page.getByText('Too small: it holds 7.8 MiB, and this is 8.6 MiB.').waitFor()
    assert.ok(await page.getByRole('button', { name: /^Long/ }).isDisabled(), 'before it is paid')
    await input.setInputFiles(await aFile(t, 'b.bin', data))
    await page.getByRole('button', { name: /^Long/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    const code = await codeOf(page)
    const { data: opened } = await site.server.mayfly.readWhisper(code)
    assert.ok(data.equals(opened))
  })

  test('what is missing or empty is named before anything is sent, and another plan keeps the draft', async (t) => {
    const { page } = await site.visit(t)
    const asked = requestsOf(page)
    await page.goto(`${site.server.url}/whisper`)
    const spark = page.getByRole('button', { name: /^Spark/ })
    const text = page.getByLabel('Text', { exact: true })
    await spark.click()
    assert.equal(await refusedField(page), 'Text')
    await text.fill('  \n ')
    await spark.click()
    assert.equal(await refusedField(page), 'Text')
    await text.fill('a secret')
    await page.getByText('More: receipt, opening time, switch').click()
    await page.getByLabel(/^Opens at/).fill('2020-01-01T10:00')
    await spark.click()
    assert.match(await refusedField(page), /^Opens at/)
    await page.getByLabel('How often it can be read').fill('4')
    await page.getByText('Maximum 3 reads.').waitFor()
    await page.getByLabel(/^Opens at/).fill('')
    await page.getByLabel(/falls silent/).fill('pulse_0123456789abcdefghijkl')
    await page.getByLabel('How often it can be read').fill('1')
    await spark.click()
    assert.match(await refusedField(page), /falls silent/)
    await page.getByLabel(/falls silent/).fill('')
    await page.getByLabel('How often it can be read').fill('')
    await spark.click()
    assert.equal(await refusedField(page), 'How often it can be read')
    assert.equal(asked.filter((path) => path.startsWith('/api/payments')).length, 0)
    await page.getByLabel('How often it can be read').fill('1')
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Choose another plan' }).click()
    await page.getByRole('button', { name: 'Choose another', exact: true }).click()
    await page.getByRole('button', { name: /^Long/ }).waitFor()
    assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), 'a secret')

    const dataTransfer = await page.evaluateHandle(() => {
      const files = new DataTransfer()
      files.items.add(new File(['dropped'], 'dropped.txt'))
      return files
    })
    await page.dispatchEvent('.draft', 'drop', { dataTransfer })
    await page.getByText(/^dropped\.txt, 7 B\. Sent as 285 B/).waitFor()
    const empty = await aFile(t, 'empty.txt', Buffer.alloc(0))
    await page.getByLabel('File', { exact: true }).setInputFiles(empty)
    await page.getByRole('button', { name: /^Spark/ }).click()
    assert.equal(await refusedField(page), 'File')
    const orders = asked.filter((path) => path === '/api/payments/whisper')
    assert.equal(orders.length, 1, 'that of the text alone')
  })

  async function open(page: Page, code: string): Promise<void> {
    await page.goto(`${site.server.url}/read`)
    await page.getByLabel('Share code').fill(code)
    await page.getByText('Revealing it uses one read').waitFor()
  }
})

/** The label of the field that has the keyboard because the browser says what is wrong with it. */
function refusedField(page: Page): Promise<string> {
  return page.evaluate(() => {
    const field = document.activeElement as HTMLInputElement
    return field.matches(':invalid') ? (field.labels?.[0]?.innerText ?? '') : ''
  })
}

/** A file of the disk: through the protocol of the browser its bytes would take seconds. */
async function aFile(t: TestContext, name: string, data: Buffer): Promise<string> {
  const path = join(await temporaryFolder(t), name)
  await writeFile(path, data)
  return path
}

/** Code and address are apart: nothing that the page offers to copy or open is a URL with a secret. */
async function expectNoSecretInAnyUrl(page: Page, code: string): Promise<void> {
  const offered = await page.evaluate(() =>
    [...document.querySelectorAll('[href], [src]')].map((each) => String(each.outerHTML)),
  )
  for (const copy of await page.getByRole('button', { name: /^Copy/ }).elementHandles()) {
    const copied = page.evaluate(
      () =>
        new Promise<string>((resolve) => {
          navigator.clipboard.writeText = async (text) => resolve(text)
        }),
    )
    await copy.click()
    offered.push(await copied)
  }
  assert.ok(offered.includes(code), 'the code is copied by itself')
  assert.ok(offered.includes(`${new URL(page.url()).origin}/read`), 'and so is the address')
  const [publicId = '', readToken = '', key = ''] = code.split(':').slice(2)
  for (const each of offered) {
    for (const url of each.match(/https?:\S+/g) ?? []) {
      for (const secret of [publicId, readToken, key]) assert.ok(!url.includes(secret), url)
    }
  }
}

/** The paths that a page asks for, as it asks. */
function requestsOf(page: Page): string[] {
  const paths: string[] = []
  page.on('request', (request) => paths.push(new URL(request.url()).pathname))
  return paths
}
