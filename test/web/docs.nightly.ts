import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { seriousFaults, startSite } from '../support/browser.ts'
import { openapi } from '../support/openapi.ts'

suite('the reference', () => {
  const site = startSite({ MAYFLY_GATE: 'on' })

  test('the reference has every operation of openapi-all.json, with every answer', async (t) => {
    const { paths } = await openapi(site.server, '/openapi-all.json')
    const expected = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { responses }]) =>
          `${method.toUpperCase()} ${path} ${Object.keys(responses).join(' ')}`,
      ),
    )
    const { page } = await site.visit(t)
    await page.goto(`${site.server.url}/docs`)
    await page.locator('.operations').waitFor()
    const shown = await page.locator('.operation').evaluateAll((operations) =>
      operations.flatMap((operation) => {
        const textsOf = (selector: string): string[] =>
          [...operation.querySelectorAll(selector)].map((each) => each.textContent ?? '')
        const path = textsOf('.address code').join('')
        const statuses = textsOf('.answer-status').join(' ')
        return textsOf('.address .method').map((method) => `${method} ${path} ${statuses}`)
      }),
    )
    assert.deepEqual(shown.toSorted(), expected.toSorted())
    assert.ok(expected.some((line) => line.startsWith('POST /api/gate/intents ')))
    const wordless = await page
      .locator('.answer')
      .evaluateAll((answers) =>
        answers
          .filter((answer) => /^\d*$/.test(answer.textContent ?? ''))
          .map((answer) => answer.closest('.operation')?.id),
      )
    assert.deepEqual(wordless, [], 'each answer is told in words')
  })

  test('the reference is narrowed by words, and an address of one operation leads to it', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(`${site.server.url}/docs#get-w-publicid`)
    const whisper = page.locator('#get-w-publicid')
    await whisper.waitFor()
    await page.waitForFunction(() => scrollY > 500)
    assert.match(await whisper.innerText(), /curl '[^']+\/w\/PUBLIC_ID' \\\n {2}-H 'Auth/)
    await page.getByRole('searchbox', { name: 'Filter' }).fill('patch pulse')
    await page.getByText(/^1 of \d+ operations$/).waitFor()
    assert.equal(await page.locator('.operation:visible').count(), 1)

    await page.getByRole('searchbox', { name: 'Filter' }).fill('no such operation')
    await page.getByText(/^0 of \d+ operations$/).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('searchbox', { name: 'Filter' }).fill('')
    await page.getByText(/^(\d+) of \1 operations$/).waitFor()
    assert.ok((await page.locator('.operation:visible').count()) > 20)
  })

  test('the reference resolves what a schema refers to, and shows each thing that an answer may be', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(`${site.server.url}/docs`)
    const buying = page.locator('#post-api-payments-catch')
    await buying.locator('summary').first().click()
    await buying.locator('summary').filter({ hasText: /^402/ }).click()
    const answers = await buying.getByRole('group', { name: 'Answer' }).allInnerTexts()
    assert.ok(answers.some((shape) => /^ {2}bolt11: string$/m.test(shape)))
    assert.match(await buying.innerText(), /L402Challenge[\s\S]+PaymentQuote[\s\S]+PaymentAuthCh/)
    assert.match(await buying.innerText(), /-d '\{"planId":"spark"\}'/)
    await buying.locator('summary').filter({ hasText: /^200/ }).click()
    assert.match(
      await buying.innerText(),
      /resource: CatchCapability \{[\s\S]+\n {4}ingestToken: string\n/,
    )
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('the reference says that it could not be loaded, and tries again', async (t) => {
    const { page, complaints } = await site.visit(t)
    await page.route('**/openapi-all.json', (route) => route.abort())
    await page.goto(`${site.server.url}/docs`)
    await page.getByRole('alert').waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.locator('.operations').waitFor()
    assert.ok(complaints.splice(0).every((each) => each.includes('ERR_FAILED')))
  })
})
