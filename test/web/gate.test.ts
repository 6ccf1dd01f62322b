import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { createReceipts } from '../../src/gate/receipts.ts'
import type { GateReceipt } from '../../src/protocol/gate-receipt.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { NARROW, seriousFaults, startSite } from '../support/browser.ts'
import { register } from '../support/gate.ts'
import { startServer, type TestServer } from '../support/server.ts'

const SECRET = 'ab'.repeat(32)

suite('a receipt of GATE', () => {
  const site = startSite({ MAYFLY_GATE: 'on', MAYFLY_SECRET: SECRET })

  test('a receipt of GATE is checked in the page, claim by claim, and sent nowhere', async (t) => {
    const receipt = await aRealReceipt(site.server)
    const { page } = await site.visit(t, { viewport: NARROW })
    const sent: string[] = []
    page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`))
    await page.goto(site.server.url)
    await page.getByRole('link', { name: 'Check a GATE receipt' }).click()
    await paste(page, receipt)
    await page.getByText('The signature is valid').waitFor()
    const worth = await page.locator('.verdict .notice').innerText()
    assert.match(worth, /^POST \/render\/cat\?size=2 was paid for with 50 sat\. It admits this/)
    const claims = await page.getByRole('table', { name: 'Claims' }).innerText()
    assert.match(claims, /showed the preimage/)
    assert.match(claims, /gate_project_/)
    assert.deepEqual(await seriousFaults(page), [])
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    assert.ok(width <= NARROW.width, `${width}`)
    for (const request of sent) {
      for (const part of receipt.split('.')) assert.ok(!request.includes(part), request)
    }
  })

  test('a receipt of GATE is not believed when anything in it is wrong, and stays a record when it is over', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(`${site.server.url}/gate`)
    const good = await signed(SECRET, { iss: site.server.url })
    const [head, , tail] = good.split('.')
    const dearer = Buffer.from(JSON.stringify({ ...CLAIMS, sat: 5000 })).toString('base64url')
    const cases: [receipt: string, answer: RegExp][] = [
      [`${head}.${dearer}.${tail}`, /The signature does not match/],
      [good.slice(0, -9), /^Not a receipt/],
      ['hello', /^Not a receipt/],
      [await signed('cd'.repeat(32), { iss: site.server.url }), /No current key of this service/],
    ]
    for (const [receipt, answer] of cases) {
      await paste(page, receipt)
      await page.getByRole('alert').filter({ hasText: answer }).waitFor()
      assert.equal(await page.getByRole('table').count(), 0, 'no claim of it is shown')
    }
    assert.deepEqual(await seriousFaults(page), [])
    await paste(page, await signed(SECRET, { iss: site.server.url, iat: 1_700_000_000 }))
    await page.getByText('The signature is valid').waitFor()
    await page.getByText('It is still a valid record of the payment').waitFor()
  })

  test('a receipt of GATE cannot be checked where GATE is off, which the page says and nothing links to', async (t) => {
    const off = await startServer(t)
    const { page } = await site.visit(t, { expected: /status of 404/ })
    await page.goto(`${off.url}/gate`)
    await page.getByText('This service does not run GATE').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Check a GATE receipt' }).count(), 0)
    assert.equal(await page.getByRole('textbox').count(), 0)
  })
})

const CLAIMS: GateReceipt = {
  iss: 'https://other.example',
  aud: 'gate_project_0000000000000000000000',
  jti: '00000000-0000-4000-8000-000000000000',
  iat: Math.floor(Date.now() / 1000),
  exp: 0,
  intent: 'gate_intent_0000000000000000000000',
  route: 'render',
  htm: 'POST',
  htp: '/render/cat',
  req: '0'.repeat(64),
  sat: 50,
  ph: '0'.repeat(64),
  net: 'regtest',
  by: 'provider',
}

/** A receipt as a service with this secret would sign it. */
async function signed(secret: string, changes: Partial<GateReceipt>): Promise<string> {
  const secrets = createSecrets([new Uint8Array(Buffer.from(secret, 'hex'))])
  const { sign } = await createReceipts(secrets.keys('gate receipt'))
  const claims = { ...CLAIMS, ...changes }
  return sign({ ...claims, exp: claims.iat + 300 })
}

async function aRealReceipt(server: TestServer): Promise<string> {
  const gate = server.mayfly.gate(await register(server))
  const quote = await gate.intent({ route: 'render', method: 'POST', path: '/render/cat?size=2' })
  const outcome = await gate.prove(quote.intentId, await server.pay(quote.bolt11))
  if (!outcome.settled) throw new Error(outcome.error)
  return outcome.receipt
}

function paste(page: Page, receipt: string): Promise<void> {
  return page.getByRole('textbox', { name: /^The receipt/ }).fill(receipt)
}
