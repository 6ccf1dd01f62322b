/** What a person does on the pages, in WebKit: `npm run contract:webkit`. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { register } from '../../test/support/gate.ts'
import { startServer } from '../../test/support/server.ts'
import { until } from '../../test/support/until.ts'
import { startBrowsers } from './browser.mjs'

suite('the pages in WebKit', () => {
  const closing = []
  const end = { after: (work) => closing.push(work) }
  let server
  let browsers

  before(async () => {
    server = await startServer(end, { MAYFLY_GATE: 'on' })
    browsers = await startBrowsers(end)
  })
  after(async () => {
    for (const close of closing.toReversed()) await close()
  })

  test('an inbox is bought by clicks, and shows a webhook as it comes', async (t) => {
    const visitor = await browsers.visit(t, server.url)
    await visitor.click('Buy an inbox')
    await visitor.click('Spark')
    await visitor.click('Pay (simulator)')
    await visitor.reads('Your inbox is ready')
    await visitor.click('Other ways')
    await visitor.click('Open without saving')
    await visitor.reads('Live')
    // The driver takes a text that may be cut off for hidden.
    const address = await visitor.run(
      `return document.querySelector('.inbox-address code').textContent`,
    )
    const body = '{"big":12345678901234567890,"text":"<b>not markup</b>"}'
    const headers = { 'content-type': 'application/json' }
    await fetch(`${address}/hook?from=test`, { method: 'POST', headers, body })
    await visitor.reads('1 of 100')
    await visitor.click('POST')
    await visitor.mentions('12345678901234567890')
    await visitor.mentions('<b>not markup</b>')
  })

  test('a secret is encrypted, sold, and read once by its code and password', async (t) => {
    const visitor = await browsers.visit(t, `${server.url}/whisper`)
    await visitor.fill('Text', 'The key is under the third pot.')
    await visitor.fill('Password (optional)', 'geranium')
    await visitor.click('Spark')
    await visitor.click('Pay (simulator)')
    await visitor.click('Other ways to pass on the code')
    const code = await visitor.text('//*[@role="group" and @aria-label="The share code"]')
    await visitor.leave()
    const reader = await browsers.visit(t, `${server.url}/read`)
    // Pasted: while it is typed, what is there may already be a code, of a whisper without a password.
    await paste(reader, 'textarea', code)
    await reader.fill('Password', 'geranium')
    await reader.click('Reveal it')
    await reader.reads('The key is under the third pot.')
  })

  test('a monitor is bought by clicks, and shows a ping as it comes', async (t) => {
    const visitor = await browsers.visit(t, server.url)
    await visitor.click('Buy a monitor')
    await visitor.click('Spark')
    await visitor.click('Pay (simulator)')
    await visitor.click('Other ways')
    const monitor = JSON.parse(await visitor.text('//*[@role="group" and @aria-label="The key"]'))
    await visitor.click('Open without saving')
    await visitor.reads('Live')
    await visitor.reads('Waiting')
    await server.mayfly.pulse(monitor).ping()
    await visitor.reads('Operational')
    await visitor.reads('1 of 4,500')
  })

  test('a receipt of GATE is checked in the page', async (t) => {
    const gate = server.mayfly.gate(await register(server))
    const quote = await gate.intent({ route: 'render', method: 'POST', path: '/render/cat?size=2' })
    const outcome = await gate.prove(quote.intentId, await server.pay(quote.bolt11))
    assert.ok(outcome.settled)
    const visitor = await browsers.visit(t, `${server.url}/gate`)
    await paste(visitor, 'textarea', outcome.receipt)
    await visitor.mentions('The signature is valid')
  })
})

async function paste(visitor, selector, text) {
  const field = `document.querySelector(${JSON.stringify(selector)})`
  await until('the field', () => visitor.run(`return ${field} !== null`))
  await visitor.run(`const field = ${field}
    field.value = ${JSON.stringify(text)}
    field.dispatchEvent(new Event('input', { bubbles: true }))`)
}
