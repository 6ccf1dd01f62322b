import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { type CatchCapability, formatCapability } from '../../src/client/index.ts'
import { NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { anInbox } from '../support/catch.ts'
import { temporaryFolder } from '../support/folder.ts'
import { mmdb } from '../support/mmdb.ts'
import {
  buyInbox,
  download,
  focused,
  linesOf,
  openKey,
  openLive,
  openWithoutSaving,
  pressInKeyMenu,
  type Sent,
  sendTo,
  stored,
  visitLive,
} from '../support/pages.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

suite('an inbox', () => {
  const site = startSite()

  test('the page of an inbox shows bytes that are no text, and forms, as they came', async (t) => {
    const inbox = await anInbox(site.server)
    await send(inbox, {
      path: '/form',
      body: 'a=1&b=%3Cb%3E',
      type: 'application/x-www-form-urlencoded',
    })
    await send(inbox, { path: '/bytes', body: new Uint8Array([0, 255, 254, 77]) })
    const { page } = await visitLive(site, t, inbox)
    await page.getByRole('button', { name: /bytes/ }).click()
    const body = page.getByRole('group', { name: 'Body', exact: true })
    assert.match(await body.innerText(), /^000000 {2}00 ff fe 4d +\.\.\.M$/)
    await page.getByRole('button', { name: /form/ }).click()
    assert.match(
      await page.getByRole('table', { name: 'Fields' }).innerText(),
      /a\s+1\s[\s\S]*b\s+<b>/,
    )
  })

  test('the page of an inbox shows invisible characters, and folds what is long', async (t) => {
    const inbox = await anInbox(site.server)
    await send(inbox, {
      path: '/hidden',
      body: 'invoice\u202efdp.exe\u0000 \u200bend',
      type: 'text/plain',
      headers: { 'x-long': 'v'.repeat(3000) },
    })
    const { page } = await visitLive(site, t, inbox)
    await page.getByRole('button', { name: /hidden/ }).click()
    const body = page.getByRole('group', { name: 'Body', exact: true })
    assert.equal(await body.innerText(), 'invoice‹U+202E›fdp.exe␀ ‹U+200B›end')
    await page.getByRole('tab', { name: /^Headers/ }).click()
    const value = page.getByRole('row', { name: /^x-long/ }).locator('code')
    assert.equal((await value.innerText()).length, 300)
    await page.getByRole('button', { name: 'Show all 3,000 characters' }).click()
    assert.equal((await value.innerText()).length, 3000)
  })

  test('the page of an inbox leaves the keyboard where it is, whatever comes, and brings it back', async (t) => {
    const inbox = await anInbox(site.server)
    await send(inbox, { path: '/first', body: '{}' })
    const { page } = await visitLive(site, t, inbox, { viewport: NARROW })
    const first = page.getByRole('button', { name: /first/ })
    await first.focus()
    await send(inbox, { path: '/second', body: '{}' })
    await page.getByRole('button', { name: /second/ }).waitFor()
    assert.match(await focused(page), /^POST\s*\/first/)
    await page.keyboard.press('Enter')
    await until('the keyboard is at the request', async () => {
      return (await focused(page)) === 'POST /first'
    })
    await page.getByRole('button', { name: 'Back to the list' }).press('Enter')
    const isBack = async () => /^POST\s*\/first/.test(await focused(page))
    await until('the keyboard is back at its row', isBack)
  })

  test('an expired inbox says how many requests came, and counts nothing that is deleted', async (t) => {
    const { page } = await site.visit(t)
    const server = await startServer(t)
    const inbox = await anInbox(server)
    await sendTo(inbox, { path: '/hook', body: '{}' }, server)
    server.clock.advance(24 * 60 * 60 * 1000 + 60_000)
    await openKey(page, inbox, server)
    await page.getByText('This inbox has expired. Its requests are deleted.').waitFor()
    assert.match(await page.locator('.inbox-used').innerText(), /^1 request came · ended .+ UTC$/)
  })

  test('an inbox stays open in its tab, and in no other that does not open it by the key that is saved, until it is removed', async (t) => {
    const inbox = await anInbox(site.server)
    const { page, context } = await visitLive(site, t, inbox)
    await page.reload()
    await page.getByText('Live', { exact: true }).waitFor()
    const tab = await context.newPage()
    await tab.goto(`${site.server.url}/catch`)
    await tab.getByRole('heading', { name: 'Open an inbox' }).waitFor()
    await pressInKeyMenu(page, 'Save in this browser')
    await tab.reload()
    await tab.getByRole('button', { name: 'Open Inbox 1' }).click()
    await pressInKeyMenu(tab, 'Remove from this browser')
    await tab.getByRole('button', { name: 'Remove it', exact: true }).click()
    await tab.reload()
    await tab.getByRole('heading', { name: 'Open an inbox' }).waitFor()
    await pressInKeyMenu(page, 'Close')
    await page.getByRole('heading', { name: 'Open an inbox' }).waitFor()
    assert.deepEqual(await stored(page), [])
  })

  test('an inbox that was bought and saved nowhere is not lost to a service that is away, nor to a slip', async (t) => {
    const { page } = await site.visit(t, { expected: /status of 402|ERR_FAILED/ })
    await buyInbox(page, site.server)
    await page.route('**/api/catch/**', (route) => route.abort())
    await openWithoutSaving(page)
    await page.getByText('The service does not answer').waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'away')
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('Closing this tab loses access for good').waitFor()
    await pressInKeyMenu(page, 'Close')
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    const asked: string[] = []
    page.on('dialog', (dialog) => {
      asked.push(dialog.type())
      return dialog.accept()
    })
    await page.goto('about:blank')
    assert.deepEqual(asked, ['beforeunload'])
    await page.goto(`${site.server.url}/catch`)
    await page.getByText('Live', { exact: true }).waitFor()
    await download(page, 'Download')
    await page.getByText('Closing this tab loses access for good').waitFor({ state: 'detached' })
    await pressInKeyMenu(page, 'Close')
    await page.getByRole('heading', { name: 'Open an inbox' }).waitFor()
  })

  test('the page of an inbox says whether the service is away or its reader is offline, and shows what came meanwhile when it is back', async (t) => {
    const server = await startServer(t, { MAYFLY_PORT: String(await freePort()) })
    const inbox = await anInbox(server)
    const { page, context } = await visitLive(site, t, inbox, { server, expected: /ERR_/ })
    await server.stop()
    await page.getByText('Connection lost. Trying again…').waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await context.setOffline(true)
    await page.getByText('You are offline').waitFor()
    await server.restart()
    await context.setOffline(false)
    await send(inbox, { path: '/meanwhile', body: '{}' }, server)
    await page.getByRole('button', { name: /meanwhile/ }).waitFor({ timeout: RECONNECT_MS })
    await page.getByText('Live', { exact: true }).waitFor()
  })

  test('the page of an inbox says where a sender is, as far as that is known, and asks nobody', async (t) => {
    // It leaves before that server does.
    const { page } = await site.visit(t, { viewport: NARROW })
    const file = join(await temporaryFolder(t), 'places.mmdb')
    await writeFile(file, mmdb({ networks: { '203.0.113.0/24': BERLIN } }))
    const server = await startServer(t, {
      MAYFLY_GEOIP_DATABASE: file,
      MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
    })
    const inbox = await anInbox(server)
    for (const [path, from] of [
      ['/berlin', '203.0.113.7'],
      ['/nowhere', '198.51.100.1'],
    ] as const) {
      await send(inbox, { path, body: '{}', headers: { 'x-forwarded-for': from } }, server)
    }
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).origin))
    await openLive(page, inbox, server)
    await page.getByRole('button', { name: /berlin/ }).click()
    await page.getByRole('tab', { name: /^Headers/ }).click()
    await page.getByText('Berlin, DE, guessed from the address').waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('button', { name: 'Back to the list' }).click()
    await page.getByRole('button', { name: /nowhere/ }).click()
    await page.getByText('from 198.51.100.1').waitFor()
    assert.equal(await page.getByText('guessed from the address').count(), 0)
    assert.deepEqual([...new Set(asked)], [server.url], 'nobody else hears of it')
  })

  test('the page of an inbox takes names and paths of any length and script without going wide', async (t) => {
    const inbox = await anInbox(site.server)
    const path = `/${'very-long-path-'.repeat(30)}end`
    await send(inbox, {
      path,
      body: JSON.stringify({ שלום: 'مرحبا 🎉' }),
      headers: { [`x-${'very-long-name-'.repeat(9)}`]: 'a'.repeat(250) },
    })
    const { page } = await visitLive(site, t, inbox, { viewport: NARROW })
    await page.getByRole('button', { name: /very-long-path/ }).click()
    const title = await page.getByRole('heading', { level: 2, name: /^POST/ }).innerText()
    assert.ok(title.length < 130, title)
    await page.getByRole('tab', { name: /^Headers/ }).click()
    assert.equal(await page.locator('.long').innerText(), path)
    await page.getByRole('tab', { name: 'Body' }).click()
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    assert.ok(width <= NARROW.width, `${width}`)
    assert.match(await page.getByRole('group', { name: 'Body', exact: true }).innerText(), /שלום/)
  })

  test('the page of an inbox opens a body that is all brackets, and all others of the largest size', async (t) => {
    const inbox = await anInbox(site.server)
    const deep = 30_000
    await send(inbox, { path: '/deep', body: '['.repeat(deep) + ']'.repeat(deep) })
    await send(inbox, { path: '/wide', body: `[${'1,'.repeat(32_000)}1]` })
    await send(inbox, { path: `/fields?${'a&'.repeat(14_000)}`, body: '' })
    await send(inbox, { path: '/small', body: '{"a":[],"b":{},"c":[1,{"d":"[,"}]}' })
    const { page } = await visitLive(site, t, inbox)
    const body = page.getByRole('group', { name: 'Body', exact: true })
    await page.getByRole('button', { name: /deep/ }).click()
    assert.match((await body.innerText()).slice(0, 20), /^\[\n {2}\[\n {4}\[\n/)
    await page.getByText('the rest is in the download').waitFor()
    await page.getByRole('button', { name: /wide/ }).click()
    await page.getByRole('heading', { name: 'POST /wide' }).waitFor()
    await page.getByRole('button', { name: 'Hex' }).click()
    await page.getByText('the rest is in the download').waitFor()
    await page.getByRole('button', { name: /fields/ }).click()
    await page.getByRole('tab', { name: 'Query' }).click()
    await page.getByText('The first 500 of 14,000.').waitFor()
    await page.getByRole('tab', { name: 'Body' }).click()
    await page.getByRole('button', { name: /small/ }).click()
    assert.equal(
      await body.innerText(),
      '{\n  "a": [],\n  "b": {},\n  "c": [\n    1,\n    {\n      "d": "[,"\n    }\n  ]\n}',
    )
    const names = await body.locator('.json-name').allInnerTexts()
    assert.deepEqual(names, ['"a"', '"b"', '"c"', '"d"'])
  })

  test('the page of an inbox takes a hundred requests at once, each shown once and in order', async (t) => {
    const inbox = await anInbox(site.server)
    const { page } = await visitLive(site, t, inbox)
    const numbers = Array.from({ length: 100 }, (_, index) => index)
    await Promise.all(numbers.map((number) => send(inbox, { path: `/fast-${number}`, body: '{}' })))
    await page.getByText('100 of 100', { exact: true }).waitFor()
    const lines = linesOf(page)
    // Only the rows in view are drawn; each says its place among all.
    await page.locator('[aria-setsize="100"]').first().waitFor()
    const { events } = await site.server.mayfly.catch(inbox).page({ limit: 50 })
    const shown = await lines.locator('.path').allTextContents()
    assert.ok(shown.length > 10 && shown.length < 100)
    assert.deepEqual(
      shown,
      events.slice(0, shown.length).map((event) => event.path),
    )
  })

  test('the page of an inbox refuses the capability of another service before a token leaves', async (t) => {
    const inbox = await anInbox(site.server)
    const { page } = await site.visit(t)
    const text = formatCapability({ capability: inbox, baseUrl: 'https://mayfly.example' })
    await page.goto(`${site.server.url}/catch`)
    await page.getByLabel('Or paste the key').fill(text)
    await page.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByText('belongs to another service').waitFor()
    assert.equal(await page.getByLabel('Or paste the key').inputValue(), text)
  })

  const send = (inbox: CatchCapability, sent: Sent, server: { url: string } = site.server) =>
    sendTo(inbox, sent, server)
})

/** The pause between two tries is half a minute at most. */
const RECONNECT_MS = 60_000

/** As the databases of MaxMind say it. */
const BERLIN = {
  city: { names: { en: 'Berlin' } },
  country: { iso_code: 'DE' },
  continent: { code: 'EU' },
  location: { latitude: 52.52, longitude: 13.41 },
}
