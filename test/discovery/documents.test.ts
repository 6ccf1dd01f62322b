import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { suite, test } from 'node:test'
import { Compile } from 'typebox/schema'
import type { Announced } from '../../src/discovery/announced.ts'
import { aiCatalog, l402Services, serverCard } from '../../src/discovery/documents.ts'
import { llmsText } from '../../src/discovery/llms.ts'
import { skillIndex, skillText } from '../../src/discovery/skills.ts'
import { PLAN_IDS, PRODUCT_NAMES } from '../../src/lib/product-names.ts'
import type { Network } from '../../src/lightning/lightning.ts'
import { ask, assertError } from '../support/http.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { vectors } from '../support/vectors.ts'
import { BASE_URL } from '../support/wallet-flow.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
/** Path, media type, and its schema in test/vectors/discovery/ if it is JSON. */
const DOCUMENTS: [path: string, type: string, schema: string | null][] = [
  ['/.well-known/l402-services', JSON_TYPE, 'l402-services'],
  ['/.well-known/agent-skills/index.json', JSON_TYPE, 'agent-skills-index'],
  ['/.well-known/ai-catalog.json', 'application/ai-catalog+json; charset=utf-8', 'ai-catalog'],
  ['/mcp/server-card', 'application/mcp-server-card+json; charset=utf-8', 'server-card'],
  ['/openapi.json', JSON_TYPE, null],
  ['/llms.txt', 'text/plain; charset=utf-8', null],
  ...PRODUCT_NAMES.map((name): [string, string, null] => [
    `/.well-known/agent-skills/mayfly-${name}/SKILL.md`,
    'text/markdown; charset=utf-8',
    null,
  ]),
]

type Services = {
  services: { id: string; endpoint: string; pricing: { amount: number } }[]
  description: string
}
type Index = { skills: { name: string; description: string; url: string; digest: string }[] }
type Catalog = { entries: { identifier: string; type: string; url: string }[] }

const json = async <T>(url: string): Promise<T> => (await (await fetch(url)).json()) as T

suite('the documents by which programs find the service', () => {
  const shared = shareServer()

  for (const [path, type, schema] of DOCUMENTS) {
    test(`${path} is served to any page for five minutes, and takes GET and HEAD alone`, async () => {
      const { url } = await shared()
      // Its length is told of the text as it is, without compression.
      const headers = { 'accept-encoding': 'identity' }
      const got = await fetch(url + path, { headers })
      const text = await got.text()
      const head = await fetch(url + path, { method: 'HEAD', headers })
      for (const { status, headers } of [got, head]) {
        assert.equal(status, 200)
        assert.equal(headers.get('content-type'), type)
        assert.equal(headers.get('cache-control'), 'public, max-age=300')
        assert.equal(headers.get('access-control-allow-origin'), '*')
        assert.equal(headers.get('content-length'), String(Buffer.byteLength(text)))
      }
      const etag = String(got.headers.get('etag'))
      const same = await fetch(url + path, { headers: { ...headers, 'if-none-match': etag } })
      assert.deepEqual([same.status, await same.text()], [304, ''])
      for (const [accepted, coding] of [
        ['br;q=0, gzip', 'gzip'],
        ['br;q=0,gzip;q=0.0', null],
        ['gzip;q=1, BR', 'br'],
      ] as const) {
        const coded = await fetch(url + path, { headers: { 'accept-encoding': accepted } })
        assert.equal(coded.headers.get('content-encoding'), coding, accepted)
        assert.equal(coded.headers.get('vary'), 'accept-encoding')
        assert.equal(await coded.text(), text)
      }
      assert.equal(await head.text(), '')
      const refused = await ask(url, `POST ${path}`)
      assertError(refused, '405 method not allowed')
      assert.equal(refused.headers.get('allow'), 'GET, HEAD')
      assert.doesNotMatch(text, /\{base_url\}/)
      if (schema !== null) assertFits(schema, JSON.parse(text))
    })
  }

  test('every address in the documents answers with what the document calls it', async () => {
    const { url } = await shared()
    const catalog = await json<Catalog>(`${url}/.well-known/ai-catalog.json`)
    for (const { url: address, type } of catalog.entries) {
      const answer = await fetch(address)
      assert.equal(answer.status, 200, address)
      // No media type of a skill or of OpenAPI is registered, so these are served as what they are.
      const served =
        {
          'application/agent-skills+md': 'text/markdown',
          'application/openapi+json': 'application/json',
        }[type] ?? type
      assert.equal(answer.headers.get('content-type')?.split(';')[0], served, address)
    }
    const texts = await Promise.all(
      DOCUMENTS.map(async ([path]) => (await fetch(url + path)).text()),
    )
    const links = new Set(texts.flatMap((text) => linksIn(text, url)))
    assert.ok(links.size >= 6)
    for (const link of links) {
      const { status } = await fetch(link)
      // What needs a body has no GET.
      const isPost = link === `${url}/mcp` || link.startsWith(`${url}/api/buy/whisper/`)
      const expected = isPost ? 405 : link.startsWith(`${url}/api/buy/`) ? 402 : 200
      assert.equal(status, expected, link)
    }
  })

  test('the digest of a skill is that of the bytes at its address, and its head names it', async () => {
    const { url } = await shared()
    const { skills } = await json<Index>(`${url}/.well-known/agent-skills/index.json`)
    assert.deepEqual(
      skills.map(({ name }) => name),
      PRODUCT_NAMES.map((name) => `mayfly-${name}`),
    )
    for (const { name, description, url: address, digest } of skills) {
      const bytes = Buffer.from(await (await fetch(address)).arrayBuffer())
      assert.equal(digest, `sha256:${hash('sha256', bytes, 'hex')}`)
      const head = `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n---\n`
      assert.equal(bytes.toString().slice(0, head.length), head)
      assert.ok(address.endsWith(`/${name}/SKILL.md`))
      assert.match(bytes.toString(), /\/api\/payments\/\w+/)
      assert.ok(bytes.length < 16_384, 'below 5,000 tokens')
    }
  })

  test('the document of the API links its guide and its pages with absolute addresses', async () => {
    const { url } = await shared()
    const document = await json<{ 'x-service-info': object }>(`${url}/openapi.json`)
    assert.deepEqual(document['x-service-info'], {
      categories: ['developer-tools'],
      docs: { homepage: `${url}/`, apiReference: `${url}/docs`, llms: `${url}/llms.txt` },
    })
  })

  test('no document has a token, a key or an invoice in it', async () => {
    const { url } = await shared()
    for (const [path] of DOCUMENTS) {
      // Its examples are made up.
      if (path === '/openapi.json') continue
      const text = await (await fetch(url + path)).text()
      assert.doesNotMatch(text, /(?:_owner|_ingest|_read|_ping)_[0-9A-Za-z]{20}|lnbc(?:rt)?\d/)
    }
  })
})

test('every document gives the address that clients use, whatever the request says', async (t) => {
  const { url } = await startServer(t, { MAYFLY_BASE_URL: BASE_URL })
  for (const [path] of DOCUMENTS) {
    const text = await (
      await fetch(url + path, { headers: { 'x-forwarded-host': 'evil.example' } })
    ).text()
    assert.doesNotMatch(text, new RegExp(`evil|${new URL(url).host}`))
    const [link = ''] = linksIn(text, BASE_URL)
    assert.ok(link.startsWith(`${BASE_URL}/`), path)
  }
})

/** A service of the default plans, all of which are sold by one URL. */
const service = (network: Network, isSimulator: boolean): Announced => ({
  baseUrl: BASE_URL,
  network,
  isSimulator,
  hasMcp: true,
  operator: { termsUrl: null, privacyUrl: null, contact: null },
  products: PRODUCT_NAMES.map((name) => ({
    name,
    about: 'It does something.',
    guide: '## It\n',
    skill: 'Use it.',
    plans: PLAN_IDS.map((planId) => ({
      planId,
      priceSats: 5,
      byUrl: { method: 'GET' as const, l402Path: `/api/buy/${name}/${planId}/l402` },
    })),
  })),
})

const NOTICES: [network: Network, isSimulator: boolean, notice: string][] = [
  ['regtest', true, 'This service runs on a simulator: no real money moves.'],
  ['regtest', false, 'This service runs on regtest: no real money moves.'],
  ['signet', false, 'This service runs on signet: no real money moves.'],
]

for (const [network, isSimulator, notice] of NOTICES) {
  test(`every document of a service says: ${notice}`, () => {
    const announced = service(network, isSimulator)
    for (const text of textsOf(announced)) assert.ok(text.includes(notice))
    for (const { description } of (
      l402Services(announced) as Services & { services: { description: string }[] }
    ).services) {
      assert.ok(description.endsWith(notice))
    }
  })
}

test('no document of a service on mainnet says that no real money moves', () => {
  const announced = service('mainnet', false)
  for (const text of textsOf(announced)) assert.doesNotMatch(text, /no real money|simulator/)
})

test('a catalogue names its entries by its host, also without a domain', () => {
  for (const baseUrl of [
    'https://mayfly.example',
    'http://[2001:db8::1]:8402',
    'http://10.0.0.7',
  ]) {
    const announced = { ...service('mainnet', false), baseUrl }
    assertFits('ai-catalog', aiCatalog(announced))
    assertFits('server-card', serverCard(announced))
  }
})

function textsOf(announced: Announced): string[] {
  const documents = [l402Services, skillIndex, aiCatalog, serverCard].map((make) => make(announced))
  return [
    ...documents.map((document) => JSON.stringify(document)),
    ...announced.products.map((product) => skillText(announced, product)),
    llmsText(announced, []),
  ]
}

function assertFits(name: string, document: unknown): void {
  const [fits, errors] = Compile(vectors<object>(`discovery/${name}`)).Errors(document)
  assert.ok(fits, JSON.stringify(errors))
}

/** The addresses of the service in a text, without those that have a placeholder. */
function linksIn(text: string, url: string): string[] {
  const links = text.matchAll(new RegExp(`${url.replaceAll('.', '\\.')}/[^\\s"',;)\`]*`, 'g'))
  return [...links].map(([link]) => link.replace(/[.:]$/, '')).filter((link) => !/[{}<]/.test(link))
}
