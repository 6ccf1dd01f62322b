import assert from 'node:assert/strict'
import { get } from 'node:http'
import { suite, test } from 'node:test'
import { brotliDecompressSync } from 'node:zlib'
import { layoutShift, NARROW, seriousFaults, startSite, WIDE } from '../support/browser.ts'

const NOBODYS_STATUS = '/status/pulse_status_0000000000000000000000'
const PAGES = [
  ...['/', '/buy', '/catch', '/whisper', '/read', '/receipt', '/pulse', '/gate', '/docs'],
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
  const site = startSite()

  for (const path of PAGES) {
    test(`${path} has no serious fault for a reader, and nothing jumps`, async (t) => {
      for (const { viewport, colorScheme } of LOOKS) {
        const expected = ABSENT.has(path) ? { expected: IS_ABSENT } : {}
        const { page } = await site.visit(t, { viewport, colorScheme, ...expected })
        await page.goto(site.server.url + path, { waitUntil: 'networkidle' })
        assert.deepEqual(await seriousFaults(page), [], colorScheme)
        assert.ok((await layoutShift(page)) < 0.01, colorScheme)
        const width = await page.evaluate(() => document.documentElement.scrollWidth)
        assert.ok(width <= viewport.width, `${width} fits into ${viewport.width}`)
      }
    })

    test(`${path} loads one readable module of less than 60 KB`, async () => {
      const html = (await ask(`${site.server.url}${path}`)).body.toString()
      const scripts = [...html.matchAll(/<script type="module" src="([^"]+)">/g)]
      assert.equal(scripts.length, 1)
      const address = site.server.url + scripts[0]?.[1]
      const { status, headers, body } = await ask(address, { 'accept-encoding': 'br' })
      assert.equal(status, 200)
      assert.equal(headers['content-encoding'], 'br')
      assert.match(String(headers['cache-control']), /immutable/)
      assert.ok(body.length < MAX_SCRIPT_BYTES, `${body.length} bytes`)
      const text = (await ask(address)).body.toString()
      assert.match(text, /^\/\/ web\/[a-z/]+\.ts$/m)
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

  test('the documents for programs are compressed for those who accept that', async () => {
    for (const path of ['/openapi.json', '/llms.txt']) {
      const plain = await ask(site.server.url + path)
      const packed = await ask(site.server.url + path, { 'accept-encoding': 'gzip, br' })
      assert.equal(plain.headers['content-encoding'], undefined)
      assert.equal(packed.headers['content-encoding'], 'br')
      assert.equal(packed.headers.vary, 'accept-encoding')
      assert.deepEqual(brotliDecompressSync(packed.body), plain.body)
      assert.ok(packed.body.length < plain.body.length / 2)
    }
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
    for (const path of [
      ...[
        '/api',
        '/api/',
        '/api/none',
        '/api?x',
        '//api/none',
        '/c',
        '/c/',
        '/w/',
        '/w/x/y',
        '/p/x/y',
      ],
      ...[
        '/.well-known/none',
        '/assets/none',
        '/health/',
        '/simulator/none',
        '/c/catch_none',
        '/w/none',
      ],
    ]) {
      const { type } = await asPerson(site.server.url + path)
      assert.equal(type, 'application/json; charset=utf-8', path)
    }
    const posted = await fetch(`${site.server.url}/no/such/page`, {
      method: 'POST',
      headers: PERSON,
    })
    assert.equal(posted.headers.get('content-type'), 'application/json; charset=utf-8')
  })

  test('prices that cannot be read are asked for again, and a checkout that is closed says so, and nothing moves', async (t) => {
    for (const viewport of [NARROW, WIDE]) {
      const { page } = await site.visit(t, { viewport, expected: /ERR_FAILED/ })
      await page.route('**/api/catalog', (route) => route.abort())
      await page.goto(site.server.url)
      await page.getByText('The prices could not be loaded.').waitFor()
      assert.deepEqual(await seriousFaults(page), [])
      const top = await page.locator('.product').first().boundingBox()
      await page.unrouteAll({ behavior: 'wait' })
      await page.route('**/api/catalog', async (route) => {
        const answer = await route.fetch()
        await route.fulfill({ json: { ...(await answer.json()), checkoutEnabled: false } })
      })
      await page.getByRole('button', { name: 'Try again' }).click()
      await page.getByText('The checkout is closed for now.').waitFor()
      await page.getByText('900 sat').first().waitFor()
      assert.ok((await layoutShift(page)) < 0.01)
      assert.deepEqual(await page.locator('.product').first().boundingBox(), top)
    }
  })

  test('each page that needs scripts says so within sight where they are off', async (t) => {
    const { page } = await site.visit(t, {
      viewport: NARROW,
      javaScriptEnabled: false,
      expected: IS_ABSENT,
    })
    for (const path of PAGES) {
      await page.goto(site.server.url + path)
      const box = await page
        .locator('.notice')
        .filter({ hasText: /this (?:page’s|page's) scripts/ })
        .boundingBox()
      const isFound = box !== null && box.y > 0
      assert.ok(isFound, path)
      // The page of the interface has its two documents above.
      if (path !== '/docs') assert.ok(box.y + box.height < NARROW.height, `${path} ${box.y}`)
    }
  })

  test('a text that a browser does not let a page copy is shown to be copied by hand', async (t) => {
    const { page } = await site.visit(t)
    await page.addInitScript(() => {
      Object.defineProperty(navigator, 'clipboard', { value: undefined })
      document.execCommand = () => false
    })
    await page.goto(`${site.server.url}/whisper`)
    await page.getByLabel('Text', { exact: true }).fill('hello')
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
    await page.locator('.prices a').nth(8).waitFor()
    for (const name of ['Buy an inbox', 'Write a whisper', 'Buy a monitor', 'I have a code']) {
      const box = await page.getByRole('link', { name }).boundingBox()
      assert.ok(box && box.y + box.height < 768, `${name} ${box?.y}`)
    }
    await page.getByRole('img', { name: /^Mayfly at work/ }).waitFor()
    await page.getByRole('link', { name: 'I have a code' }).click()
    await page.getByLabel('Share code').waitFor()
    assert.equal(await page.locator('nav a[aria-current]').innerText(), 'Read')
  })

  test('three clicks and a payment lead to the first ping, and then the front page has the monitor by name, plan and end', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(site.server.url)
    await page.locator('#prices-pulse a').first().click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('button', { name: 'Keep and open the monitor' }).click()
    await page.getByRole('button', { name: 'Ping now' }).click()
    // Three clicks from the front page, besides the payment.
    await page.getByText('Operational', { exact: true }).waitFor()
    await page.goto(site.server.url)
    const things = page.getByRole('listitem').filter({ hasText: 'Monitor 1' })
    assert.match(
      await things.innerText(),
      /^Monitor 1\s+Monitor · Spark · ends \d+ \w+ \d{4}, [\d:]+\s+Open$/,
    )
    await page.getByRole('link', { name: 'Your things' }).click()
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('button', { name: 'Open Monitor 1' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    assert.equal(new URL(page.url()).href, `${site.server.url}/pulse`)
    await page.evaluate(() => localStorage.clear())
    await page.goto(site.server.url)
    await page.getByText('900 sat').first().waitFor()
    assert.equal(await page.getByText('Your things').filter({ visible: true }).count(), 0)
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

  test('the prices are those of the catalogue, and the simulator is named', async (t) => {
    const { page } = await site.visit(t)
    await page.goto(site.server.url)
    await page.getByText('no real money moves').waitFor()
    await page.locator('.prices a').nth(8).waitFor()
    const lines = await page
      .locator('#prices-whisper li')
      .filter({ hasText: 'sat' })
      .allInnerTexts()
    assert.deepEqual(
      lines.map((line) => line.replace(/\s+/g, ' ')),
      ['Spark · 24 hours 21 sat', 'Standard · 7 days 121 sat', 'Long · 30 days 402 sat'],
    )
    assert.deepEqual(
      await page
        .locator('.prices a')
        .evaluateAll((links) => links.map((link) => link.getAttribute('href'))),
      [
        ...['spark', 'standard', 'long'].map((plan) => `/buy#catch/${plan}`),
        ...['spark', 'standard', 'long'].map((plan) => `/whisper#${plan}`),
        ...['spark', 'standard', 'long'].map((plan) => `/buy#pulse/${plan}`),
      ],
    )
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
