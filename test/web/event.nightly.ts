import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import type { CatchCapability } from '../../src/client/index.ts'
import { NARROW, seriousFaults, startSite, WIDE } from '../support/browser.ts'
import { anInbox, send } from '../support/catch.ts'
import { download, linesOf, visitLive } from '../support/pages.ts'

/** A red square of 16 pixels. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR4nGP4z8BAEiJN9aiGUQ1DSgMAp4gB/7nCQ1gAAAAASUVORK5CYII=',
  'base64',
)

suite('one request of an inbox', () => {
  const site = startSite()

  test('on the narrowest phone every tab of a request can be seen', async (t) => {
    const inbox = await anInbox(site.server)
    await post(inbox, '/hook?from=test', '{}')
    const { page } = await opened(t, inbox, { viewport: { width: 320, height: 640 } })
    const tabs = await page.getByRole('tab').all()
    assert.equal(tabs.length, 7)
    for (const tab of tabs) {
      const box = await tab.boundingBox()
      assert.ok(box && box.x >= 0 && box.x + box.width <= 320, await tab.innerText())
    }
  })

  test('the page of a request shows the parts of a form, each in its own form, and downloads them', async (t) => {
    const inbox = await anInbox(site.server)
    const form = new FormData()
    form.append('title', 'Zoë')
    form.append('photo', new File([PNG], 'my\u202ephoto.exe', { type: 'image/png' }))
    form.append('data', new Blob(['{"a":[1]}'], { type: 'application/json' }))
    await post(inbox, '/form', form)
    const { page } = await opened(t, inbox, { viewport: NARROW, colorScheme: 'dark' })
    await page.getByText('Part 1 · title · 4 B').waitFor()
    await page.getByText('Part 2 · photo · file my‹U+202E›photo.exe · image/png').waitFor()
    assert.equal(await page.getByRole('group', { name: 'Part 1', exact: true }).innerText(), 'Zoë')
    await page.getByText('image/png, 16 × 16 pixels').waitFor()
    assert.equal(
      await page.getByRole('group', { name: 'Part 3', exact: true }).innerText(),
      '{\n  "a": [\n    1\n  ]\n}',
    )
    const width = await page.evaluate(() => {
      document.documentElement.style.fontSize = '200%'
      return document.documentElement.scrollWidth
    })
    assert.ok(width <= NARROW.width, `${width} with letters twice as large`)
    const saved = await download(page, 'Download part 2')
    assert.equal(saved.suggestedFilename(), 'part-2.bin')
    assert.deepEqual(await readFile(await saved.path()), PNG)
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('the page of a request unpacks a body, and shows it as it was sent, too', async (t) => {
    const inbox = await anInbox(site.server)
    const packed = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    await post(inbox, '/packed', gzipSync('{"unpacked":true}'), packed)
    await post(inbox, '/unknown', 'packed somehow', { 'content-encoding': 'lzma' })
    const { page, choose } = await opened(t, inbox, { viewport: WIDE })
    const body = page.getByRole('group', { name: 'Body', exact: true })
    await page.getByText('cannot unpack lzma').waitFor()
    assert.equal(await body.innerText(), 'packed somehow')
    await choose('packed')
    await page.getByText('Unpacked from gzip.').waitFor()
    assert.equal(await body.innerText(), '{\n  "unpacked": true\n}')
    await page.getByRole('button', { name: 'As sent' }).click()
    assert.match(await body.innerText(), /^000000 {2}1f 8b 08/)
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('the page of a request shows pictures of pixels as pictures, a drawing as text, and text in the charset of its sender', async (t) => {
    const inbox = await anInbox(site.server)
    await post(inbox, '/latin', Buffer.from('caf\xe9', 'latin1'), {
      'content-type': 'text/plain; charset=iso-8859-1',
    })
    const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    await post(inbox, '/drawing', svg, { 'content-type': 'image/svg+xml' })
    await post(inbox, '/broken', PNG.subarray(0, 30), { 'content-type': 'image/png' })
    await post(inbox, '/picture', PNG, { 'content-type': 'text/html' })
    const { page, choose } = await opened(t, inbox)
    await page.getByText('image/png, 16 × 16 pixels').waitFor()
    await choose('broken')
    await page.getByText('This browser cannot show this picture').waitFor()
    await choose('drawing')
    const body = page.getByRole('group', { name: 'Body', exact: true })
    assert.equal(await body.innerText(), svg)
    assert.equal(await page.locator('article img').count(), 0)
    await choose('latin')
    await page.getByText('Read as windows-1252.').waitFor()
    assert.equal(await body.innerText(), 'café')
  })

  test('the page of a request says whether its signature is right, and the secret goes nowhere', async (t) => {
    const inbox = await anInbox(site.server)
    const secret = 'a-secret-of-the-sender'
    const sign = (body: string) => createHmac('sha256', secret).update(body).digest('hex')
    await post(inbox, '/custom', 'other', { 'x-sig': `v=${sign('other')}` })
    await post(inbox, '/github', '{}', { 'x-hub-signature-256': `sha256=${sign('{}')}` })
    const { page, choose } = await opened(t, inbox, { viewport: NARROW })
    const asked: string[] = []
    page.on('request', (request) =>
      asked.push(request.url() + (request.postData() ?? '') + JSON.stringify(request.headers())),
    )
    await page.getByRole('tab', { name: 'Verify (signed)' }).click()
    await page.getByText('Its headers are those of GitHub.').waitFor()
    const field = page.getByLabel('Signing secret')
    assert.deepEqual(
      await Promise.all(['type', 'autocomplete'].map((name) => field.getAttribute(name))),
      ['password', 'off'],
    )
    const form = page.getByRole('form', { name: 'Verify signature' })
    assert.equal(await form.getAttribute('method'), 'dialog', 'the browser itself sends nothing')
    await field.fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByText('The signature does not match').waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await field.fill(secret)
    await page.getByRole('button', { name: 'Verify signature' }).click()
    await page.getByText('The signature is valid').waitFor()
    assert.equal(await page.getByLabel('Header', { exact: true }).isVisible(), false)

    await choose('custom')
    await page.getByLabel('Header', { exact: true }).fill('X-Sig')
    await page.getByLabel('Prefix').fill('v=')
    await field.fill(secret)
    await page.keyboard.press('Enter')
    await page.getByText('The signature is valid').waitFor()
    await page.getByLabel('Sender').selectOption('slack')
    await field.press('Enter')
    await page.getByText('The request has no X-Slack-Signature header.').waitFor()
    for (const viewport of [NARROW, WIDE]) {
      await page.setViewportSize(viewport)
      const { width = 0 } = (await page.getByLabel('Sender').boundingBox()) ?? {}
      assert.ok(width >= 140, `the names of the senders are cut off at ${width} px`)
    }

    assert.ok(asked.every((request) => !request.includes(secret)))
    const stored = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie]),
    )
    assert.ok(!stored.includes(secret))
    assert.equal(new URL(page.url()).search, '')
  })

  test('the page of a request compares it with the one before, and with another that is chosen', async (t) => {
    const inbox = await anInbox(site.server)
    const json = { 'content-type': 'application/json' }
    await post(inbox, '/same', '{"n":1}', json)
    await post(inbox, '/same', '{"n":1,"list":[1,2,3]}', json)
    await post(inbox, '/same?x=1', '{"n":2,"list":[1,2,3]}', { ...json, 'x-new': 'yes' })
    const { page } = await opened(t, inbox)
    await page.getByRole('tab', { name: 'Compare' }).click()
    const differences = page.getByRole('group', { name: 'Differences' })
    const text = await differences.innerText()
    for (const line of [
      '− POST /same',
      '+ POST /same?x=1',
      '+ x-new: yes',
      '−   "n": 1,',
      '+   "n": 2,',
    ]) {
      assert.ok(text.split('\n').includes(line), `${line} in ${text}`)
    }
    assert.doesNotMatch(text, /content-type/)
    await page.getByLabel('The other request').selectOption({ index: 1 })
    await page.getByText('− is in #1, + is in #3.').waitFor()
    assert.match(await differences.innerText(), /\+ {3}"list": \[/)
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('the page of a request writes it as a command for a target, and copies what it shows', async (t) => {
    const inbox = await anInbox(site.server)
    await post(inbox, '/code', '{"a":"é"}', {
      'content-type': 'application/json',
      'x-l': 'caf\xe9',
    })
    const { page } = await opened(t, inbox)
    // The pages' policy lets nobody read the clipboard.
    await page.evaluate(() => {
      navigator.clipboard.writeText = async (text) => {
        document.body.dataset.copied = text
      }
    })
    const copied = () => page.evaluate(() => document.body.dataset.copied ?? '')
    await page.getByRole('tab', { name: 'Replay' }).click()
    await page.getByLabel('Target').fill('http://localhost:4000/hook')
    await page.getByRole('button', { name: 'Copy the request for curl' }).click()
    const code = await copied()
    assert.match(code, /^curl [\s\S]+--header "\$\(printf 'x-l: caf\\351'\)"/)
    assert.equal(await page.getByRole('group', { name: 'the request for curl' }).innerText(), code)
    assert.match(code, /localhost:4000\/hook\/code/)
    await page.getByText('--to http://localhost:4000/hook').waitFor()
    await page.getByRole('tab', { name: 'Body' }).click()
    await page.getByRole('button', { name: 'Copy body' }).click()
    assert.equal(await copied(), '{"a":"é"}')
    await page.getByRole('tab', { name: /^Headers/ }).click()
    await page.getByRole('button', { name: 'Copy the value of x-l' }).click()
    assert.equal(await copied(), 'café')
    await page.getByRole('button', { name: 'Copy headers' }).click()
    assert.match(await copied(), /^content-type: application\/json\nx-l: café\n/m)
  })

  test('the page of a request sets what its inbox answers, by the name of who asks or as it is written', async (t) => {
    const inbox = await anInbox(site.server)
    await post(inbox, '/first', '{}')
    const { page } = await opened(t, inbox, { expected: /status of 400/ })
    await page.getByRole('tab', { name: 'Answer' }).click()
    await page.getByText('The inbox answers 204 without a body.').waitFor()
    const save = page.getByRole('button', { name: 'Save the answer' })
    await page.getByLabel('Answer for').selectOption('Slack, challenge')
    await save.click()
    await page.getByText('The inbox answers with the “challenge” of each request.').waitFor()
    const asked = await send(site.server, inbox, { method: 'POST', body: '{"challenge":"c4"}' })
    assert.equal(asked.text, 'c4')

    await page.getByLabel('Answer for').selectOption('My own')
    await page.getByLabel('Status').selectOption('404')
    await page.getByLabel('Response body').fill('é'.repeat(4096))
    await save.click()
    await page.getByText(/^The service answered: .*body: /).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByLabel('Response body').fill('nobody here')
    await save.click()
    await page.getByText('The inbox answers 404 with nobody here.').waitFor()
    const own = await send(site.server, inbox, { method: 'POST', body: '{}' })
    assert.deepEqual([own.status, own.text], [404, 'nobody here'])
  })

  test('the page of an inbox downloads all requests as HAR or NDJSON', async (t) => {
    const inbox = await anInbox(site.server)
    for (let number = 1; number <= 55; number++) await post(inbox, `/${number}`, `${number}`)
    const { page } = await opened(t, inbox, { viewport: NARROW, colorScheme: 'dark' })
    const back = page.getByRole('button', { name: 'Back to the list' })
    if (await back.isVisible()) await back.click()
    await page.getByText('More', { exact: true }).click()
    await page.getByRole('button', { name: 'Download all' }).click()
    // What is in the files is told in content/export-file.test.ts.
    for (const format of ['HAR', 'NDJSON']) {
      const saved = await download(page, `Download as ${format}`)
      assert.equal(saved.suggestedFilename(), `${inbox.publicId}.${format.toLowerCase()}`)
      const text = await readFile(await saved.path(), 'utf8')
      assert.equal(text.match(/"(?:path|_mayfly)":/g)?.length, 55)
      await page.getByText('The file has all 55 requests.').waitFor()
      assert.deepEqual(await seriousFaults(page), [])
    }
  })

  async function post(
    inbox: CatchCapability,
    path: string,
    ...[body, headers = {}]: [body: BodyInit, headers?: Record<string, string>]
  ): Promise<void> {
    const answer = await send(site.server, inbox, { path, method: 'POST', body, headers })
    assert.equal(answer.status, 204)
  }

  /** Opens the newest request. `choose` opens another. */
  async function opened(
    t: Parameters<typeof site.visit>[0],
    inbox: CatchCapability,
    options: Parameters<typeof site.visit>[1] = {},
  ) {
    const { page } = await visitLive(site, t, inbox, options)
    await linesOf(page).first().getByRole('button').click()
    const choose = (path: string) => chooseAgain(page, path)
    return { page, choose }
  }

  async function chooseAgain(page: Page, path: string): Promise<void> {
    const back = page.getByRole('button', { name: 'Back to the list' })
    if (await back.isVisible()) await back.click()
    await page.getByRole('button', { name: new RegExp(path) }).click()
    await page.getByRole('heading', { name: `POST /${path}` }).waitFor()
  }
})
