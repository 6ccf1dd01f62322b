/** What the operator says of itself, and where it is shown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openapi } from '../support/openapi.ts'
import { startServer } from '../support/server.ts'

const SAID = {
  MAYFLY_TERMS_URL: 'https://mayfly.example/terms?v=1&l=en',
  MAYFLY_PRIVACY_URL: 'https://mayfly.example/privacy',
  MAYFLY_CONTACT: 'abuse@mayfly.example',
}

const htmlOf = async (url: string): Promise<string> =>
  (await fetch(url, { headers: { accept: 'text/html' } })).text()

test('terms, privacy and contact stand on every page, in /llms.txt and in the OpenAPI documents', async (t) => {
  const server = await startServer(t, SAID)
  for (const path of ['/', '/docs', '/catch', '/nothing-here']) {
    const html = await htmlOf(server.url + path)
    assert.ok(html.includes('href="https://mayfly.example/terms?v=1&amp;l=en"'), path)
    assert.ok(html.includes('href="https://mayfly.example/privacy"'), path)
    assert.ok(html.includes('href="mailto:abuse@mayfly.example"'), path)
  }
  const llms = await (await fetch(`${server.url}/llms.txt`)).text()
  assert.ok(llms.includes('- Terms: https://mayfly.example/terms?v=1&l=en\n'), llms)
  assert.ok(llms.includes('- Privacy: https://mayfly.example/privacy\n'))
  assert.ok(llms.includes('- Contact: abuse@mayfly.example\n'))
  for (const path of ['/openapi.json', '/openapi-all.json'] as const) {
    const { info } = (await openapi(server, path)) as { info?: Record<string, unknown> }
    assert.equal(info?.termsOfService, SAID.MAYFLY_TERMS_URL)
    assert.deepEqual(info?.contact, { email: SAID.MAYFLY_CONTACT })
  }
})

test('a contact that is an address of the web is a link, and nothing is shown of what is not set', async (t) => {
  const server = await startServer(t, { MAYFLY_CONTACT: 'https://mayfly.example/contact' })
  const html = await htmlOf(server.url)
  assert.ok(html.includes('href="https://mayfly.example/contact"'))
  assert.ok(!/>(?:Terms|Privacy)</.test(html) && !html.includes('{{'))
  const { info } = (await openapi(server, '/openapi.json')) as { info?: Record<string, unknown> }
  assert.deepEqual(info?.contact, { url: 'https://mayfly.example/contact' })
  assert.ok(!('termsOfService' in (info ?? {})))
})

test('security.txt has the contact, and never a date that is over; without a contact there is none', async (t) => {
  const server = await startServer(t, SAID)
  const textOf = async () => (await fetch(`${server.url}/.well-known/security.txt`)).text()
  const first = await textOf()
  assert.match(
    first,
    /^Contact: mailto:abuse@mayfly\.example\nExpires: \S+Z\nCanonical: http\S+\n$/,
  )
  server.clock.advance(400 * 24 * 60 * 60 * 1000)
  const [, expires = ''] = /Expires: (\S+)/.exec(await textOf()) ?? []
  assert.ok(Date.parse(expires) > server.now())
  assert.match(expires, /T00:00:00\.000Z$/, 'one text a day')
  const silent = await startServer(t)
  assert.equal((await fetch(`${silent.url}/.well-known/security.txt`)).status, 404)
})

test('crawlers are kept from whatever sells, acts or holds what somebody bought', async (t) => {
  const { url } = await startServer(t)
  const lines = (await (await fetch(`${url}/robots.txt`)).text()).split('\n')
  assert.equal(lines[0], 'User-agent: *')
  for (const path of ['/api/', '/c/', '/p/', '/w/']) assert.ok(lines.includes(`Disallow: ${path}`))
})
