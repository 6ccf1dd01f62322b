import assert from 'node:assert/strict'
import { get } from 'node:http'
import { before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import {
  endOfSuite,
  layoutShift,
  NARROW,
  seriousFaults,
  startBrowser,
  visit,
  WIDE,
} from '../support/browser.ts'
import { startServer, type TestServer } from '../support/server.ts'

const NOBODYS_STATUS = '/status/pulse_status_0000000000000000000000'
const PAGES = [
  ...['/', '/buy', '/catch', '/whisper', '/read', '/pulse', '/gate', '/docs'],
  NOBODYS_STATUS,
]
/** Widths move things and schemes colour them: two looks have each of both. */
const LOOKS = [
  { viewport: WIDE, colorScheme: 'light' },
  { viewport: NARROW, colorScheme: 'dark' },
] as const
/** GATE is off here and shows no keys, and nobody shares such a status. */
const ABSENT = new Set(['/gate', NOBODYS_STATUS])
const IS_ABSENT = /status of 404/
/** What a page may make a browser load before it does anything. */
const MAX_SCRIPT_BYTES = 60 * 1024

suite('pages', () => {
  let server: TestServer
  let browser: Browser
  const end = endOfSuite()
  before(async () => {
    server = await startServer(end)
    browser = await startBrowser(end)
  })

  for (const path of PAGES) {
    test(`${path} has no serious fault for a reader, and nothing jumps`, async (t) => {
      for (const { viewport, colorScheme } of LOOKS) {
        const expected = ABSENT.has(path) ? { expected: IS_ABSENT } : {}
        const { page } = await visit(t, browser, { viewport, colorScheme, ...expected })
        await page.goto(server.url + path, { waitUntil: 'networkidle' })
        assert.deepEqual(await seriousFaults(page), [], colorScheme)
        assert.ok((await layoutShift(page)) < 0.01, colorScheme)
        const width = await page.evaluate(() => document.documentElement.scrollWidth)
        assert.ok(width <= viewport.width, `${width} fits into ${viewport.width}`)
      }
    })

    test(`${path} names every module it needs, in less than 60 KB`, async () => {
      const html = (await ask(`${server.url}${path}`)).body.toString()
      const modules = [...html.matchAll(/<link rel="modulepreload" href="([^"]+)">/g)]
      const named = new Set(modules.map(([, address]) => address ?? ''))
      assert.ok(named.size > 3)
      let bytes = 0
      for (const address of named) {
        const { status, headers, body } = await ask(server.url + address, {
          'accept-encoding': 'br',
        })
        assert.equal(status, 200, address)
        assert.equal(headers['content-encoding'], 'br')
        assert.match(String(headers['cache-control']), /immutable/)
        bytes += body.length
        const source = (await ask(server.url + address)).body.toString()
        for (const [, to] of source.matchAll(/^(?:import|export)\s[^'"]*?from '([^']+)'/gm)) {
          assert.ok(named.has(new URL(to ?? '', server.url + address).pathname), `${address} ${to}`)
        }
      }
      assert.ok(bytes < MAX_SCRIPT_BYTES, `${bytes} bytes`)
    })

    test(`${path} lets nothing foreign in, and is asked for again when it has changed`, async () => {
      const { headers, body } = await ask(server.url + path)
      const policy = String(headers['content-security-policy'])
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
      assert.match(policy, /frame-ancestors 'none'; require-trusted-types-for 'script'/)
      assert.doesNotMatch(policy, /unsafe|http/)
      assert.equal(headers['referrer-policy'], 'no-referrer')
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
      assert.equal(headers['cache-control'], 'no-cache')
      assert.doesNotMatch(
        body.toString(),
        /<script(?![^>]*\ssrc="\/assets\/)|\sstyle=|\son\w+=|https?:/,
      )
      const again = await ask(server.url + path, { 'if-none-match': String(headers.etag) })
      assert.deepEqual([again.status, again.body.length], [304, 0])
    })
  }

  test('scripts are readable as they are served: without types, with their comments', async () => {
    const html = (await ask(`${server.url}/catch`)).body.toString()
    const version = /\/assets\/([^/]+)\//.exec(html)?.[1]
    const { headers, body } = await ask(`${server.url}/assets/${version}/client/payments.js`)
    assert.equal(headers['content-type'], 'text/javascript; charset=utf-8')
    assert.match(body.toString(), /\/\*\* Buying: one key, one order, one invoice/)
    assert.doesNotMatch(body.toString(), /import type|: Promise</)
  })

  test('only what a page leads to is served', async () => {
    const html = (await ask(`${server.url}/`)).body.toString()
    const version = /\/assets\/([^/]+)\//.exec(html)?.[1]
    for (const path of [
      'serve.js',
      'config.js',
      'protocol/hmac.js',
      'web/frame.html',
      '../package.json',
    ]) {
      assert.equal((await ask(`${server.url}/assets/${version}/${path}`)).status, 404, path)
    }
    const old = await ask(`${server.url}/assets/another/web/home.js`)
    assert.deepEqual([old.status, old.headers['cache-control']], [200, 'no-cache'])
  })

  test('the front door sends programs on', async () => {
    const { headers, body } = await ask(`${server.url}/`, { accept: 'application/json' })
    assert.match(String(headers['content-type']), /^application\/json/)
    assert.deepEqual(JSON.parse(body.toString()), {
      service: 'mayfly',
      guide: '/llms.txt',
      openapi: '/openapi.json',
      catalog: '/api/catalog',
    })
  })

  test('the prices are those of the catalogue, and the simulator is named', async (t) => {
    const { page } = await visit(t, browser)
    await page.goto(server.url)
    await page.getByText('no real money moves').waitFor()
    const lines = await page
      .locator('#prices-whisper li')
      .filter({ hasText: 'sat' })
      .allInnerTexts()
    assert.deepEqual(
      lines.map((line) => line.replace(/\s+/g, ' ')),
      ['24 hours 21 sat', '7 days 121 sat', '30 days 402 sat'],
    )
  })
})

type Answer = { status: number; headers: Record<string, unknown>; body: Buffer }

/** The bytes as they are sent: fetch would decompress them. */
function ask(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get(url, { headers }, async (response) => {
      const parts = await response.toArray()
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: Buffer.concat(parts),
      })
    }).on('error', reject)
  })
}
