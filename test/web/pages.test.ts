import assert from 'node:assert/strict'
import { get } from 'node:http'
import { suite, test } from 'node:test'
import type { Catalog } from '../../src/client/index.ts'
import { layoutShift, NARROW, seriousFaults, startSite, WIDE } from '../support/browser.ts'
import { write } from '../support/pages.ts'

const NOBODYS_STATUS = '/status/pulse_status_0000000000000000000000'
const PAGES = [
  ...['/', '/buy', '/catch', '/whisper', '/read', '/receipt', '/pulse', '/gate', '/docs'],
  '/recover',
  NOBODYS_STATUS,
]
/** Widths move things and schemes colour them: two looks have each of both. */
const LOOKS = [
  { viewport: WIDE, colorScheme: 'light' },
  { viewport: NARROW, colorScheme: 'dark' },
] as const
/** Where a person gets the error that a program gets. */
const BELOW_THE_API = [
  ...['/api', '/api/', '/api/none', '/api?x', '//api/none', '/c', '/c/', '/c/catch_none'],
  ...['/w/', '/w/none', '/w/x/y', '/p/x/y', '/.well-known/none', '/assets/none', '/health/'],
  '/simulator/none',
]
/** GATE is off here and shows no keys, and nobody shares such a status. */
const ABSENT = new Set(['/gate', NOBODYS_STATUS])
const IS_ABSENT = /status of 404/
/** What a page may make a browser load before it does anything. */
const MAX_PAGE_BYTES = 60 * 1024

suite('pages', () => {
  const site = startSite()

  for (const path of PAGES) {
    test(`${path} has no serious fault for a reader, and nothing jumps`, async (t) => {
      for (const { viewport, colorScheme } of LOOKS) {
        const expected = ABSENT.has(path) ? { expected: IS_ABSENT } : {}
        const { page } = await site.visit(t, { viewport, colorScheme, ...expected })
        await page.goto(site.server.url + path, { waitUntil: 'networkidle' })
        assert.ok((await layoutShift(page)) < 0.01, colorScheme)
        const width = await page.evaluate(() => document.documentElement.scrollWidth)
        assert.ok(width <= viewport.width, `${width} fits into ${viewport.width}`)
        // axe takes half a minute for all operations, which have one form; reach.nightly.ts asks for all.
        if (path === '/docs') await page.getByLabel('Filter').fill('/api/payments/recover')
        assert.deepEqual(await seriousFaults(page), [], colorScheme)
      }
    })

    test(`${path} loads one module and one style sheet of less than 60 KB`, async () => {
      const html = (await ask(`${site.server.url}${path}`)).body.toString()
      const scripts = [...html.matchAll(/<script type="module" src="([^"]+)">/g)]
      assert.equal(scripts.length, 1)
      const address = site.server.url + scripts[0]?.[1]
      const { status, headers, body } = await ask(address, { 'accept-encoding': 'br' })
      assert.equal(status, 200)
      assert.equal(headers['content-encoding'], 'br')
      assert.match(String(headers['cache-control']), /immutable/)
      const [sheet, ...more] = [...html.matchAll(/<link rel="stylesheet" href="([^"]+)">/g)]
      assert.deepEqual(more, [])
      const style = await ask(site.server.url + sheet?.[1], { 'accept-encoding': 'br' })
      assert.equal(style.status, 200)
      const bytes = body.length + style.body.length
      assert.ok(bytes < MAX_PAGE_BYTES, `${bytes} bytes`)
      const text = (await ask(address)).body.toString()
      // Anyone can read what sees a secret.
      if (/^\/(?:whisper|read)$/.test(path)) assert.match(text, /^\/\/ web\/[a-z/]+\.tsx$/m)
      assert.equal(text.includes(process.cwd()), false)
    })

    test(`${path} lets nothing foreign in, and is asked for again when it has changed`, async () => {
      const { headers, body } = await ask(site.server.url + path)
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
      const again = await ask(site.server.url + path, { 'if-none-match': String(headers.etag) })
      assert.deepEqual([again.status, again.body.length], [304, 0])
    })
  }

  test('only what a page leads to is served', async () => {
    const html = (await ask(`${site.server.url}/`)).body.toString()
    const version = /\/assets\/([^/]+)\//.exec(html)?.[1]
    for (const path of [
      'serve.js',
      'web/home.js',
      'frame.html',
      'pages/home.html',
      '../package.json',
    ]) {
      assert.equal((await ask(`${site.server.url}/assets/${version}/${path}`)).status, 404, path)
    }
    const old = await ask(`${site.server.url}/assets/another/home.js`)
    assert.deepEqual([old.status, old.headers['cache-control']], [200, 'no-cache'])
  })

  test('the front page sends programs on', async () => {
    const { headers, body } = await ask(`${site.server.url}/`, { accept: 'application/json' })
    assert.match(String(headers['content-type']), /^application\/json/)
    assert.deepEqual(JSON.parse(body.toString()), {
      service: 'mayfly',
      guide: '/llms.txt',
      openapi: '/openapi.json',
      catalog: '/api/catalog',
    })
  })

  test('a person at an address where nothing is gets a page, which nobody stores', async (t) => {
    const { page } = await site.visit(t, { viewport: NARROW, expected: IS_ABSENT })
    await page.goto(`${site.server.url}/no/such/page`)
    await page.getByRole('heading', { name: 'Nothing here' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('link', { name: 'Open an inbox' }).click()
    await page.getByRole('heading', { name: 'Open an inbox' }).waitFor()

    const { policy, ...lost } = await asPerson(`${site.server.url}/no/such/page`)
    assert.match(policy, /^default-src 'none'; script-src 'self'/)
    assert.deepEqual(lost, { status: 404, type: 'text/html; charset=utf-8', cache: 'no-store' })
    const head = await fetch(`${site.server.url}/no/such/page`, { method: 'HEAD', headers: PERSON })
    assert.deepEqual([head.status, await head.text()], [404, ''])
    assert.match(head.headers.get('content-type') ?? '', /^text\/html/)
    assert.equal((await asPerson(`${site.server.url}/%zz`)).type, 'text/html; charset=utf-8')
  })

  test('a program at an address where nothing is gets the error, and so does anyone below the API', async () => {
    const accepted = [
      undefined,
      '*/*',
      'application/json',
      'application/json, text/plain, */*',
      'application/json, text/html;q=0.9',
      'text/html;q=0',
      'application/xhtml+xml',
    ]
    for (const accept of accepted) {
      const { status, headers, body } = await ask(`${site.server.url}/no/such/page`, {
        ...(accept === undefined ? {} : { accept }),
      })
      assert.deepEqual(
        [status, headers['content-type'], body.toString()],
        [404, 'application/json; charset=utf-8', '{"error":"not found"}'],
        accept,
      )
    }
    for (const path of BELOW_THE_API) {
      const { type } = await asPerson(site.server.url + path)
      assert.equal(type, 'application/json; charset=utf-8', path)
    }
    const posted = await fetch(`${site.server.url}/no/such/page`, {
      method: 'POST',
      headers: PERSON,
    })
    assert.equal(posted.headers.get('content-type'), 'application/json; charset=utf-8')
  })

  test('each page that needs scripts says so within sight where they are off', async (t) => {
    const { page } = await site.visit(t, {
      viewport: NARROW,
      javaScriptEnabled: false,
      expected: IS_ABSENT,
    })
    for (const path of PAGES) {
      await page.goto(site.server.url + path)
      const box = await page.locator('noscript .notice').boundingBox()
      assert.ok(box && box.y > 0 && box.y + box.height < NARROW.height, `${path} ${box?.y}`)
    }
  })

  test('a text that a browser does not let a page copy is shown to be copied by hand', async (t) => {
    const { page } = await site.visit(t)
    await page.addInitScript(() => {
      Object.defineProperty(navigator, 'clipboard', { value: undefined })
      document.execCommand = () => false
    })
    await write(page, 'hello', site.server)
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Copy the invoice' }).click()
    await page.getByRole('heading', { name: 'Copy it by hand' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
    const selected = await page.evaluate(() => {
      const area = document.activeElement as HTMLTextAreaElement
      return area.value.slice(area.selectionStart, area.selectionEnd)
    })
    assert.match(selected, /^lnbcrt/)
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('heading', { name: 'Copy it by hand' }).waitFor({ state: 'detached' })
  })

  test('the first screen of a laptop shows every price, each button to buy and the way to read a whisper', async (t) => {
    const { page } = await site.visit(t, { viewport: { width: 1366, height: 768 } })
    await page.goto(site.server.url)
    for (const name of ['Buy an inbox', 'Write a secret', 'Buy a monitor', 'I have a code']) {
      const box = await page.getByRole('link', { name }).boundingBox()
      assert.ok(box && box.y + box.height < 768, `${name} ${box?.y}`)
    }
    await page.getByRole('link', { name: 'I have a code' }).click()
    await page.getByLabel('Share code').waitFor()
    const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
    assert.deepEqual(await links.allInnerTexts(), ['Inboxes', 'Secrets', 'Monitors', 'Docs'])
  })

  test('three clicks and a payment lead to the first ping, and then the front page has the monitor by name, plan and end', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(site.server.url)
    await page.getByRole('link', { name: /^Spark · 24 hours\s*50 sat/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('button', { name: 'Save and open' }).click()
    await page.getByRole('button', { name: 'Ping now' }).click()
    // Three clicks from the front page, besides the payment.
    await page.getByText('Operational', { exact: true }).waitFor()
    await page.goto(site.server.url)
    const things = page.getByRole('listitem').filter({ hasText: 'Monitor 1' })
    await things.getByText('Operational').waitFor()
    assert.match(
      await things.innerText(),
      /^Monitor 1\s+Monitor · Spark · until \d+ \w+ \d{4}, \d\d:\d\d \w+\s+Operational\s+Open$/,
    )
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('button', { name: 'Open Monitor 1' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    assert.equal(new URL(page.url()).href, `${site.server.url}/pulse`)
    await page.evaluate(() => localStorage.clear())
    await page.goto(site.server.url)
    await page.getByRole('button', { name: 'Send a request' }).waitFor()
    assert.equal(await page.getByText('Your things').filter({ visible: true }).count(), 0)
  })

  test('three clicks and a payment put the code of a secret on the clipboard', async (t) => {
    const { page } = await site.visit(t)
    await page.addInitScript(() => {
      navigator.clipboard.writeText = async (text) => void Object.assign(globalThis, { text })
    })
    await page.goto(site.server.url)
    await page.getByRole('link', { name: 'Write a secret' }).click()
    await page.getByLabel('Text', { exact: true }).fill('The key is under the third pot.')
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('button', { name: 'Copy message' }).click()
    await page.locator('#announcer').getByText('Copied').waitFor()
    const text = await page.evaluate(() => (globalThis as { text?: string }).text ?? '')
    assert.match(text, /^There is a secret for you\./)
    assert.ok(text.includes('mayfly-whisper:1:'))
  })

  test('a copy is confirmed to eyes and ears, and moves nothing', async (t) => {
    const { page } = await site.visit(t, { permissions: ['clipboard-write'] })
    await page.goto(`${site.server.url}/buy`)
    await page.getByRole('button', { name: /^Spark/ }).click()
    const copy = page.getByRole('button', { name: 'Copy the invoice' })
    const wallet = page.getByRole('link', { name: 'Open in a wallet' })
    await copy.waitFor()
    const before = [await copy.boundingBox(), await wallet.boundingBox()]
    await copy.click()
    const copied = page.getByRole('button', { name: 'Copied' })
    await copied.waitFor()
    assert.deepEqual([await copied.boundingBox(), await wallet.boundingBox()], before)
    assert.equal(await page.locator('#announcer').innerText(), 'Copied')
    assert.equal(await page.locator('#announcer').getAttribute('role'), 'status')
    await copy.waitFor()
  })

  test('the prices are those of the catalogue without any script, and the simulator is named', async (t) => {
    const { page } = await site.visit(t, { javaScriptEnabled: false })
    await page.goto(site.server.url)
    await page.getByText('no real money moves').waitFor()
    const links = page.locator('.prices a')
    const { products } = (await (await fetch(`${site.server.url}/api/catalog`)).json()) as Catalog
    const expected = (['catch', 'whisper', 'pulse'] as const).flatMap((product) =>
      products[product].plans.map(({ planId, durationLabel, priceSats }) => {
        const name = `${planId[0]?.toUpperCase()}${planId.slice(1)}`
        const href = product === 'whisper' ? `/whisper#${planId}` : `/buy#${product}/${planId}`
        return [`${name} · ${durationLabel} ${priceSats} sat`, href]
      }),
    )
    assert.deepEqual(
      (await links.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ')),
      expected.map(([text]) => text),
    )
    assert.deepEqual(
      await links.evaluateAll((all) => all.map((link) => link.getAttribute('href'))),
      expected.map(([, href]) => href),
    )
  })

  test('the demo inbox fills in the page, and sends nothing', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(site.server.url, { waitUntil: 'networkidle' })
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    const demo = page.getByRole('region', { name: 'Demo inbox' })
    await demo.getByRole('button', { name: 'Send a request' }).click()
    await demo.getByRole('button', { name: /POST.*\/stripe/ }).waitFor()
    await demo.getByText('"type": "invoice.paid"').waitFor()
    assert.deepEqual(asked, [])
  })
})

/** What a browser asks for when somebody follows a link. */
const PERSON = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }

async function asPerson(
  url: string,
): Promise<{ status: number; type: string; cache: string; policy: string }> {
  const { status, headers } = await ask(url, PERSON)
  return {
    status,
    type: String(headers['content-type']),
    cache: String(headers['cache-control']),
    policy: String(headers['content-security-policy']),
  }
}

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
