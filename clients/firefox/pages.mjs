/** What a person does on the pages, in Firefox: `npm run contract:firefox`. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { register } from '../../test/support/gate.ts'
import { live } from '../../test/support/pulse.ts'
import { startServer } from '../../test/support/server.ts'

const tools = process.env.TOOLS
const puppeteer = createRequire(`${tools}/`)('puppeteer-core')
const pictures = join(tools, 'pictures')
/** Long enough for a page on a busy machine. */
const TIMEOUT_MS = 60_000
const PAGES = new URL('../../src/web/pages/', import.meta.url)

suite('the pages in Firefox', () => {
  const closing = []
  let server
  let browser

  before(async () => {
    mkdirSync(pictures, { recursive: true })
    server = await startServer({ after: (work) => closing.push(work) }, { MAYFLY_GATE: 'on' })
    browser = await puppeteer.launch({
      ...{ browser: 'firefox', executablePath: process.env.FIREFOX, headless: true },
      ...{ timeout: 2 * TIMEOUT_MS, protocolTimeout: 2 * TIMEOUT_MS },
    })
    closing.push(() => browser.close())
  })
  after(async () => {
    for (const close of closing.toReversed()) await close()
  })

  /** A page for a new user. At its end, the test asserts that it complained of nothing, and takes a picture. */
  async function visit(t, path = '/') {
    const context = await browser.createBrowserContext()
    const page = await context.newPage()
    page.setDefaultTimeout(TIMEOUT_MS)
    await page.setViewport({ width: 1280, height: 900 })
    const complaints = []
    page.on('console', (message) => {
      if (['error', 'warn', 'assert'].includes(message.type())) complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(String(error)))
    // Firefox tells the console of a violated policy, but not us.
    await page.evaluateOnNewDocument(() => {
      document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
        // biome-ignore lint/suspicious/noConsole: it is listened to above.
        console.error(`refused by the policy: ${violatedDirective} ${blockedURI}`),
      )
    })
    await page.goto(server.url + path)
    t.after(async () => {
      await page.screenshot({ path: join(pictures, `${t.name.replace(/\W+/g, '-')}.png`) })
      await context.close()
      assert.deepEqual(complaints, [])
    })
    return person(page)
  }

  test('an inbox is bought by clicks, and shows a webhook as it comes', async (t) => {
    const visitor = await visit(t)
    await visitor.click('link', 'Buy an inbox')
    await buySpark(visitor)
    await visitor.sees('heading', 'Your inbox is ready')
    await visitor.press('Other ways')
    await visitor.click('button', 'Open without saving')
    await visitor.reads('Live')
    const address = await visitor.text('.inbox-address code')
    assert.match(address, /\/c\/catch_[0-9A-Za-z]{22}$/)
    const body = '{"big":12345678901234567890,"text":"<b>not markup</b>"}'
    const headers = { 'content-type': 'application/json' }
    await fetch(`${address}/hook?from=test`, { method: 'POST', headers, body })
    await visitor.reads('1 of 100')
    await visitor.page.locator('::-p-xpath(//button[contains(., "/hook")])').click()
    assert.equal(
      await visitor.text('::-p-aria([name="Body"][role="group"])'),
      '{\n  "big": 12345678901234567890,\n  "text": "<b>not markup</b>"\n}',
    )
    assert.doesNotMatch(visitor.page.url(), /catch_/)
  })

  test('a secret is encrypted, sold, and read once by its code and password', async (t) => {
    const visitor = await visit(t)
    await visitor.click('link', 'Write a secret')
    await visitor.fill('Text', 'The key is under the third pot. 🗝')
    await visitor.fill('Password (optional)', 'geranium')
    await visitor.click('button', /^Spark/)
    await visitor.click('button', 'Pay (simulator)')
    await visitor.press('Other ways to pass on the code')
    const code = await visitor.text('::-p-aria([name="The share code"][role="group"])')
    const reader = await visit(t, '/read')
    await reader.fill('Share code', code)
    // Firefox gives such a field no role.
    await reader.page.locator('input[type=password]').fill('geranium')
    await reader.click('button', 'Reveal it')
    assert.equal(
      await reader.text('::-p-aria([name="The text"][role="group"])'),
      'The key is under the third pot. 🗝',
    )
    assert.ok(!reader.page.url().includes(code))
  })

  test('a monitor is bought by clicks, shows a ping as it comes, and goes late by itself', async (t) => {
    const visitor = await visit(t)
    await visitor.click('link', 'Buy a monitor')
    await buySpark(visitor)
    await visitor.press('Other ways')
    const monitor = JSON.parse(await visitor.text('::-p-aria([name="The key"][role="group"])'))
    await visitor.click('button', 'Open without saving')
    await visitor.reads('Live')
    await visitor.reads('Waiting')
    await server.mayfly.pulse(monitor).ping()
    await visitor.reads('Operational')
    await visitor.reads('1 of 4,500')
    await live(server, 3 * 60_000)
    await visitor.page.waitForFunction(() => document.title === 'Late · Monitor · Mayfly')
  })

  test('a receipt of GATE is checked in the page', async (t) => {
    const gate = server.mayfly.gate(await register(server))
    const quote = await gate.intent({ route: 'render', method: 'POST', path: '/render/cat?size=2' })
    const outcome = await gate.prove(quote.intentId, await server.pay(quote.bolt11))
    assert.ok(outcome.settled)
    const visitor = await visit(t, '/gate')
    await visitor.page.locator('textarea').fill(outcome.receipt)
    await visitor.mentions('The signature is valid')
    await visitor.page.locator('textarea').fill(`${outcome.receipt.slice(0, -4)}AAAA`)
    await visitor.mentions('The signature does not match')
  })

  test('a capability that is kept is there again after a reload', async (t) => {
    const visitor = await visit(t, '/buy#catch')
    await buySpark(visitor)
    await visitor.click('button', 'Save and open')
    await visitor.reads('Live')
    await visitor.page.goto(`${server.url}/catch`)
    await visitor.reads('Live')
    await visitor.page.reload()
    await visitor.reads('Live')
  })

  test('two tabs of one inbox are live at once', async (t) => {
    const visitor = await visit(t, '/buy#catch')
    await buySpark(visitor)
    await visitor.click('button', 'Save and open')
    await visitor.reads('Live')
    const tab = person(await visitor.page.browserContext().newPage())
    // Where Firefox asks its cache, the second tab waits for 20 seconds.
    tab.page.setDefaultTimeout(15_000)
    await tab.page.goto(`${server.url}/catch`)
    await tab.click('button', 'Open Inbox 1')
    await tab.reads('Live')
  })

  for (const file of readdirSync(PAGES).filter((name) => name.endsWith('.html'))) {
    const name = file.replace('.html', '')
    test(`the page "${name}" fits a phone and complains of nothing`, async (t) => {
      const visitor = await visit(t, name === 'home' ? '/' : `/${name}`)
      await visitor.page.setViewport({ width: 360, height: 740 })
      await visitor.page.waitForFunction(() => document.querySelector('main, h1') !== null)
      const width = await visitor.page.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(width <= 360, `${width} px wide`)
    })
  }
})

async function buySpark(visitor) {
  await visitor.click('button', /^Spark/)
  await visitor.click('button', 'Pay (simulator)')
}

/** What a person does, by what the page says: names that assistive technology reads. */
function person(page) {
  const named = (role, name) =>
    name instanceof RegExp
      ? `::-p-xpath(//*[self::button or self::a][starts-with(normalize-space(.), "${name.source.slice(1)}")])`
      : `::-p-aria([name="${name}"][role="${role}"])`
  return {
    page,
    click: (role, name) => page.locator(named(role, name)).click(),
    sees: (role, name) => page.locator(named(role, name)).wait(),
    /** Opens what is folded. */
    press: (text) => page.locator(`::-p-xpath(//summary[normalize-space(.)="${text}"])`).click(),
    fill: (label, text) => page.locator(`::-p-aria([name="${label}"][role="textbox"])`).fill(text),
    /** Waits for an element with exactly this text. Puppeteer's own selectors do not see that a text has changed. */
    reads: (text) =>
      page.waitForFunction(
        (text) =>
          [...document.querySelectorAll('body *')].some(
            (element) => element.checkVisibility() && element.textContent.trim() === text,
          ),
        {},
        text,
      ),
    mentions: (text) =>
      page.waitForFunction((text) => document.body.innerText.includes(text), {}, text),
    text: async (selector) =>
      page
        .locator(selector)
        .map((element) => element.innerText)
        .wait(),
  }
}
