/**
 * The pages for people. Each is a file in `web/pages/`: a head with its properties, then its main part. All
 * share one frame, and load their scripts and styles from /assets/. One of them is the 404 page.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { lazily } from '../../lib/lazily.ts'
import type { App } from '../app.ts'
import { problem } from '../errors.ts'
import { type OperatorFacts, operatorLinks } from '../operator.ts'
import type { SoldPlan } from '../product.ts'
import type { ApiSurface } from '../server/cors.ts'
import { type Assets, readAssets } from './assets.ts'
import { encode, qualityOf, type Served, sendEncoded } from './encoded.ts'

/** `src/` or `dist/`, whichever this file runs from. */
const ROOT = new URL('../../', import.meta.url)
/** A built package has no page for who works on the pages. */
const IS_SOURCE = import.meta.url.endsWith('.ts')
const YEAR_SECONDS = 31_536_000

/** No foreign content, no inline scripts or styles, no text that becomes code, and no framing. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy':
    'camera=(), microphone=(), geolocation=(), payment=(), usb=(), clipboard-read=()',
}

/** The page without an address of its own. */
const NOT_FOUND = 'not-found'
/** The paths for programs, besides the roots of the products. Answers there are never pages. */
const FOR_PROGRAMS = ['/api/', '/assets/', '/simulator/', '/health/', '/ready/']

type Page = ReturnType<typeof readPage>

/** What a page says of a plan. */
type PricedPlan = Pick<SoldPlan, 'planId' | 'durationLabel' | 'priceSats' | 'available'>

export type PagesOptions = {
  /** Shows a banner that no real money moves. */
  isSimulator: boolean
  /** The products that are switched on. */
  has: ReadonlySet<string>
  /** The paths of the products for programs. */
  surfaces: readonly ApiSurface[]
  /** Its links stand at the foot of each page. */
  operator: OperatorFacts
  /** The plans that are on sale. Another edition has other prices. */
  onSale: { edition(): number; plans(product: string): readonly PricedPlan[] }
  /** The price of a bitcoin, such as `EUR 84321.5`, for what the page says of money; empty while it is unknown. */
  rate(): string
}

/** The pages as they were made for plans and a rate. */
type Site = { of: string; html: Map<string, Promise<Served>> }

export function createPages(options: PagesOptions) {
  const { isSimulator, has, surfaces, onSale } = options
  const isForPrograms = startsWithAny([
    ...FOR_PROGRAMS,
    ...surfaces.flatMap(({ roots }) => roots.map(({ path }) => path)),
  ])
  const pages = readPages().filter(({ isForDevelopment }) => !isForDevelopment || isSimulator)
  const linked = pages.filter(({ needs }) => !needs || has.has(needs))
  const frame = readFileSync(new URL('web/frame.html', ROOT), 'utf8')
  // Read at the first visit: many servers never have one.
  const assets = lazily(() => readAssets(ROOT, pages))
  let made: Site | null = null
  async function site(): Promise<Site> {
    const read = await assets()
    const of = `${onSale.edition()} ${options.rate()}`
    if (made?.of !== of) made = makeSite(of, read)
    return made
  }

  function makeSite(of: string, assets: Assets): Site {
    const html = pages.map((page): [string, Promise<Served>] => {
      const text = fill(frame, { ...options, page, linked, assets })
      return [page.name, encode(Buffer.from(text), 'text/html; charset=utf-8')]
    })
    return { of, html: new Map(html) }
  }

  async function pageOf(name: string): Promise<Served> {
    const page = await (await site()).html.get(name)
    if (!page) throw new Error(`there is no page ${name}`)
    return page
  }

  return {
    mount(app: App): void {
      for (const { name, path } of pages) if (name !== NOT_FOUND) mountPage(app, name, path)
      mountAssets(app, assets)
    },
    /** Shows a person that nothing is at this address; false if a program asks. */
    sendNotFoundPage(request: FastifyRequest, reply: FastifyReply): boolean {
      if (!isPerson(request) || isForPrograms.test(request.originalUrl)) return false
      pageOf(NOT_FOUND).then(
        (page) => {
          reply.code(404).headers(HEADERS).header('vary', 'accept, accept-encoding')
          sendEncoded(request, reply, page)
        },
        (error) => reply.send(error),
      )
      return true
    },
  }

  function mountPage(app: App, name: string, url: string): void {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      handler: async (request, reply) => {
        // `GET *` is routed like `/`, but has no meaning.
        if (!request.originalUrl.startsWith('/')) throw problem('not found')
        if (name === 'home') reply.header('vary', 'accept, accept-encoding')
        if (name === 'home' && prefersJson(request)) return START
        reply.headers(HEADERS).header('cache-control', 'no-cache')
        return sendEncoded(request, reply, await pageOf(name))
      },
    })
  }
}

function mountAssets(app: App, assetsOf: () => Promise<Assets>): void {
  app.route<{ Params: { version: string; '*': string } }>({
    method: ['GET', 'HEAD'],
    url: '/assets/:version/*',
    handler: async (request, reply) => {
      const assets = await assetsOf()
      const file = await assets.file(request.params['*'])
      if (!file) throw problem('not found')
      // A page of an older version gets the current file, and does not cache it.
      const isCurrent = request.params.version === assets.version
      reply
        .header('cross-origin-resource-policy', 'same-origin')
        .header(
          'cache-control',
          isCurrent ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
        )
      return sendEncoded(request, reply, file)
    },
  })
}

/** The answer to a program at `/`: where to continue. */
const START = {
  service: 'mayfly',
  guide: '/llms.txt',
  openapi: '/openapi.json',
  catalog: '/api/catalog',
}

const prefersJson = ({ headers: { accept } }: FastifyRequest): boolean =>
  qualityOf('application/json', accept) > qualityOf('text/html', accept)

/** Whether the client names HTML in `Accept`, and does not prefer JSON. */
function isPerson({ method, originalUrl, headers: { accept } }: FastifyRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  if (!originalUrl.startsWith('/')) return false
  const html = qualityOf('text/html', accept)
  return html > 0 && html >= qualityOf('application/json', accept)
}

/** Matches paths that begin with one of these roots, such as `/p/`, after any number of slashes. */
function startsWithAny(roots: readonly string[]): RegExp {
  const names = roots.map((root) => root.slice(1, -1).replaceAll('.', '\\.'))
  return new RegExp(`^/+(?:${names.join('|')})(?:[/?#]|$)`, 'i')
}

/** `linked` are the pages that may have a link on the others. */
type Filling = PagesOptions & { page: Page; linked: readonly Page[]; assets: Assets }

function fill(frame: string, filling: Filling): string {
  const { page, linked, assets, isSimulator, operator, onSale, rate } = filling
  const at = (path: string): string => `/assets/${assets.version}/${path}`
  const linksOf = (place: 'nav' | 'foot'): string =>
    linked
      .flatMap(({ name, path, [place]: text }) => {
        const current = name === page.name ? 'page' : name === page.within && 'true'
        const mark = current ? ` aria-current="${current}"` : ''
        return text === null ? [] : `<a href="${path}"${mark}>${text}</a>`
      })
      .join('\n')
  const parts: Record<string, string> = {
    title: page.title,
    description: page.description,
    name: page.name,
    style: at(`${page.style}.css`),
    icon: at('favicon.svg'),
    script: page.script ? `<script type="module" src="${at(`${page.script}.js`)}"></script>` : '',
    noscript: page.script ? NEEDS_SCRIPTS : '',
    simulator: isSimulator ? SIMULATOR_NOTICE : '',
    mode: isSimulator ? 'simulator' : 'node',
    rate: rate(),
    nav: linksOf('nav'),
    foot: linksOf('foot'),
    operator: operatorLinks(operator).map(linkOf).join(''),
  }
  for (const [product, href] of page.prices) {
    parts[`prices-${product}`] = onSale
      .plans(product)
      .map((plan) => priceLine(plan, href))
      .join('\n')
  }
  const put = (text: string): string =>
    text.replaceAll(/\{\{([\w-]+)\}\}/g, (_all, name: string) => parts[name] ?? '')
  return put(frame.replace('{{main}}', () => page.main))
}

function priceLine(plan: PricedPlan, href: string): string {
  const { planId, durationLabel, priceSats, available } = plan
  const name = `${planId[0]?.toUpperCase()}${planId.slice(1)} · ${escaped(durationLabel)}`
  if (!available) return `<li><span class="line">${name} <span>not on sale</span></span></li>`
  return `<li><a href="${href}${planId}">${name} <b>${priceSats.toLocaleString('en')} sat</b></a></li>`
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** A URL has no quotes or angle brackets in its plain spelling. */
const linkOf = ([name, href]: [string, string]): string =>
  ` <a href="${href.replaceAll('&', '&amp;')}" rel="noopener">${name}</a>`

const NEEDS_SCRIPTS =
  '<noscript><p class="notice warn">This page needs its scripts, which are served only from this site.</p></noscript>'
const SIMULATOR_NOTICE = '<p class="simulator">Simulator: no real money moves</p>'

/** The scripts of the pages of a built package. */
export const pageScripts = (): string[] =>
  readPages().flatMap(({ script, isForDevelopment }) => (isForDevelopment ? [] : (script ?? [])))

function readPages(): Page[] {
  const folder = new URL('web/pages/', ROOT)
  return readdirSync(folder)
    .filter((name) => name.endsWith('.html'))
    .map((name) => readPage(name.slice(0, -5), readFileSync(new URL(name, folder), 'utf8')))
    .filter(({ isForDevelopment }) => !isForDevelopment || IS_SOURCE)
    .sort((a, b) => a.order - b.order)
}

/** A page begins with a comment of `name: value` lines. */
function readPage(name: string, text: string) {
  const head = /^<!--\n(.*?)\n-->\n/s.exec(text)
  const properties = new Map(
    (head?.[1] ?? '').split('\n').map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }),
  )
  const script = properties.get('script') ?? null
  const prices = (properties.get('prices') ?? '').split(' ').filter((part) => part !== '')
  return {
    name,
    /** Its address: `/` and its name by default, or another such as `/status/:id`. */
    path: properties.get('path') ?? (name === 'home' ? '/' : `/${name}`),
    title: properties.get('title') ?? 'Mayfly',
    description: properties.get('description') ?? '',
    /** The module that it starts, such as `catch/inbox`, or null. */
    script,
    /** The module whose style sheet it has: its own, or that of another page. */
    style: properties.get('style') ?? script ?? '',
    /** The text of its link in the navigation or at the foot, which are sorted by `order`; null for no link. */
    nav: properties.get('nav') ?? null,
    foot: properties.get('foot') ?? null,
    /** The page that its place in the navigation is that of. */
    within: properties.get('within') ?? null,
    /** Where the prices of a product lead, by its name. The plan's name follows. */
    prices: new Map(prices.map((part) => part.split('=') as [string, string])),
    /** Shows the components, for who works on them. */
    isForDevelopment: properties.has('development'),
    /** The product that must be switched on for its link. If it is off, the page itself says so. */
    needs: properties.get('needs') ?? null,
    order: Number(properties.get('order') ?? 100),
    main: text.slice(head?.[0].length ?? 0),
  }
}
