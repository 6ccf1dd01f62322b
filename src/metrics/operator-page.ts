/**
 * The operator's page, beside the metrics: what was sold, what is owed, what is stored, and how fast the service
 * answers. One document without a script, made at each visit. It has totals alone: no id, address or secret.
 */
import { hash } from 'node:crypto'
import type { Registry } from 'prom-client'
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { PRODUCT_NAMES, type Product } from '../lib/product-names.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const DAYS = 30
const MIB = 1024 * 1024
const ROUTES = 12
const DURATION = 'mayfly_http_request_duration_seconds'
/** Of the plot of sales, in units of its view box. */
const PLOT = { width: 900, height: 160 }

export type PageSources = {
  db: Pick<Db, 'scan' | 'engine'>
  clock: Clock
  isSelling: () => boolean
}

type Sold = { day: number; product: Product; orders: number; sats: number }
type Latency = { route: string; count: number; p50: number; p99: number }

export function createOperatorPage(
  registry: Registry,
  { db, clock, isSelling }: PageSources,
): () => Promise<string> {
  async function sales(today: number): Promise<Sold[]> {
    const rows = await db.scan<Sold>({
      text: `select settled_at / ${DAY_MS} as day, product, count(*) as orders, sum(amount_sats) as sats
       from sale where settled_at >= $1 group by 1, 2`,
      values: [(today - DAYS + 1) * DAY_MS],
    })
    return rows.map(({ day, product, orders, sats }) => ({
      product,
      day: Number(day),
      orders: Number(orders),
      sats: Number(sats),
    }))
  }

  const numberOf = async (text: string): Promise<number> =>
    Number((await db.scan<{ n: number }>({ text, values: [] }))[0]?.n ?? 0)

  // The index on the state covers this query.
  const ordersIn = (state: string): Promise<number> =>
    numberOf(`select count(*) as n from purchase_order where state = '${state}'`)

  async function bytes(): Promise<Record<string, number>> {
    const size =
      db.engine === 'sqlite'
        ? 'select page_count * page_size as n from pragma_page_count, pragma_page_size'
        : 'select pg_database_size(current_database()) as n'
    return {
      Database: await numberOf(size),
      'Requests in inboxes': await numberOf(
        'select coalesce(sum(stored_bytes), 0) as n from catch_inbox_use',
      ),
      'Secrets not yet paid': await numberOf('select sum(byte_count) as n from whisper_unpaid'),
    }
  }

  return async () => {
    const today = Math.floor(clock.now() / DAY_MS)
    const [sold, open, owed, stored, latencies] = await Promise.all([
      sales(today),
      ordersIn('pending'),
      ordersIn('paid_unfulfilled'),
      bytes(),
      latenciesIn(registry),
    ] as const)
    return documentOf(`
<h1>Mayfly, for its operator</h1>
<p>As of ${new Date(clock.now()).toISOString().slice(0, 16).replace('T', ' ')} UTC. Reload the page for newer numbers.</p>
<div class="facts">
${fact('Sales', isSelling() ? 'open' : 'closed', isSelling() ? 'good' : 'bad')}
${fact('Open quotes', number(open))}
${fact('Owed orders', number(owed), owed > 0 ? 'bad' : 'good')}
${fact('Sold today', `${number(satsOf(sold, today))} sat`)}
${fact(`Sold in ${DAYS} days`, `${number(satsOf(sold))} sat`)}
</div>
${owed > 0 ? '<p class="bad">Somebody paid and got nothing: <code>mayfly order list --state paid_unfulfilled</code></p>' : ''}
<h2>Sales by day and product</h2>
${sold.length === 0 ? `<p>Nothing was sold in the last ${DAYS} days.</p>` : plotOf(sold, today) + tableOf(sold, today)}
<h2>Storage</h2>
<table>${Object.entries(stored)
      .map(([what, n]) => row(what, n < MIB ? `${number(n / 1024)} KiB` : `${number(n / MIB)} MiB`))
      .join('')}</table>
<h2>Latency since the start</h2>
${latencies.length === 0 ? '<p>No request was answered yet.</p>' : latencyTable(latencies)}`)
  }
}

/** As the pages call them. */
const TITLES: Record<Product, string> = {
  catch: 'Inboxes',
  whisper: 'Secrets',
  pulse: 'Monitors',
}

const satsOf = (sold: Sold[], day?: number): number =>
  sold.reduce((sum, one) => sum + (day === undefined || one.day === day ? one.sats : 0), 0)

/** A bar for each day, the products above each other. */
function plotOf(sold: Sold[], today: number): string {
  const days = Array.from({ length: DAYS }, (_, i) => today - DAYS + 1 + i)
  const most = Math.max(...days.map((day) => satsOf(sold, day)), 1)
  const step = PLOT.width / DAYS
  const bars = days.flatMap((day, place) => {
    let top = PLOT.height
    return PRODUCT_NAMES.flatMap((product) => {
      const one = sold.find((each) => each.day === day && each.product === product)
      if (!one) return []
      const height = (one.sats / most) * PLOT.height
      top -= height
      return `<rect class="${product}" x="${(place * step + 2).toFixed(1)}" y="${top.toFixed(1)}" width="${(step - 4).toFixed(1)}" height="${height.toFixed(1)}"><title>${dateOf(day)}: ${number(one.sats)} sat of ${TITLES[product]}</title></rect>`
    })
  })
  const legend = PRODUCT_NAMES.map(
    (product) => `<span class="${product}">■</span> ${TITLES[product]}`,
  ).join(' · ')
  return `<svg viewBox="0 0 ${PLOT.width} ${PLOT.height}" role="img" aria-label="Satoshis sold on each of the last ${DAYS} days; the table below has the numbers">${bars.join('')}<line x1="0" x2="${PLOT.width}" y1="${PLOT.height}" y2="${PLOT.height}"/></svg>
<p class="axis"><span>${dateOf(days[0] ?? today)}</span><span>highest: ${number(most)} sat</span><span>${dateOf(today)}</span></p>
<p>${legend}</p>`
}

function tableOf(sold: Sold[], today: number): string {
  const rows = sold
    .toSorted((a, b) => b.day - a.day || a.product.localeCompare(b.product))
    .map(({ day, product, orders, sats }) =>
      row(
        day === today ? 'today' : dateOf(day),
        TITLES[product],
        number(orders),
        `${number(sats)} sat`,
      ),
    )
  return `<details><summary>As a table</summary><table>${head('day', 'product', 'orders', 'paid')}${rows.join('')}</table></details>`
}

/** The routes with the most requests. Their labels are patterns of ours, never paths as received. */
async function latenciesIn(registry: Registry): Promise<Latency[]> {
  const metric = await registry.getSingleMetric(DURATION)?.get()
  const buckets = new Map<string, Map<number, number>>()
  for (const { labels, value, metricName } of (metric?.values ?? []) as {
    labels: Record<string, string | number>
    value: number
    metricName?: string
  }[]) {
    if (!metricName?.endsWith('_bucket')) continue
    const route = `${labels.method} ${labels.route}`
    const of = buckets.get(route) ?? new Map<number, number>()
    const limit = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)
    of.set(limit, (of.get(limit) ?? 0) + value)
    buckets.set(route, of)
  }
  return [...buckets]
    .map(([route, of]) => {
      const count = of.get(Number.POSITIVE_INFINITY) ?? 0
      const limits = [...of.keys()].toSorted((a, b) => a - b)
      const within = (share: number): number =>
        limits.find((limit) => (of.get(limit) ?? 0) >= share * count) ?? Number.POSITIVE_INFINITY
      return { route, count, p50: within(0.5), p99: within(0.99) }
    })
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count)
    .slice(0, ROUTES)
}

function latencyTable(latencies: Latency[]): string {
  const slowest = Math.max(...latencies.map(({ p99 }) => Math.min(p99, 10)))
  const bar = (seconds: number): string =>
    `<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width="${((Math.min(seconds, slowest) / slowest) * 100).toFixed(1)}" height="4"/></svg>`
  const time = (seconds: number): string =>
    Number.isFinite(seconds) ? `≤ ${number(seconds * 1000)} ms` : 'above 10 s'
  const rows = latencies.map(
    ({ route, count, p50, p99 }) =>
      `<tr><td><code>${escaped(route)}</code></td><td>${number(count)}</td><td>${time(p50)}</td><td>${time(p99)}${bar(p99)}</td></tr>`,
  )
  return `<table class="latency">${head('route', 'requests', 'half within', '99 % within')}${rows.join('')}</table>`
}

const row = (...cells: string[]): string =>
  `<tr>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`

const head = (...cells: string[]): string =>
  `<tr>${cells.map((cell) => `<th scope="col">${cell}</th>`).join('')}</tr>`

const fact = (name: string, value: string, kind = ''): string =>
  `<div><span>${name}</span><strong class="${kind}">${value}</strong></div>`

const number = (value: number): string =>
  value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 })

const dateOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** Its colours are those of the pages (web/ui/base.css), and two for the plot. */
const STYLE = `:root{color-scheme:light dark;--ink:#18211f;--paper:#f8f8f5;--card:#fff;--line:#e1e1da;--good:#17693c;--bad:#a62323;--a:#0b5f58;--b:#b2701a;--c:#5b55a5}
@media(prefers-color-scheme:dark){:root{--ink:#e6ebe9;--paper:#101618;--card:#182023;--line:#2a3437;--good:#7fd6a0;--bad:#ff9d94;--a:#6fd3c6;--b:#e0a355;--c:#a9a4ea}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:0 auto;padding:16px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:12px}.facts div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px}
.facts span{display:block;font-size:13px}.facts strong{font-size:18px;white-space:nowrap}
.good{color:var(--good)}.bad{color:var(--bad)}
svg{width:100%;display:block}line{stroke:var(--line)}.bar{width:8rem;max-width:100%;height:4px}.bar rect{fill:var(--a)}
.catch{fill:var(--a);color:var(--a)}.whisper{fill:var(--b);color:var(--b)}.pulse{fill:var(--c);color:var(--c)}
.axis{display:flex;justify-content:space-between;font-size:13px;margin:4px 0}
table{border-collapse:collapse;width:100%}th{text-align:left;font-size:13px}td,th{border-bottom:1px solid var(--line);padding:4px 12px 4px 0;font-variant-numeric:tabular-nums}
td:not(:first-child){white-space:nowrap}summary{padding:11px 0;cursor:pointer}
h2{margin:32px 0 8px;font-size:18px}
code{overflow-wrap:anywhere}
@media(max-width:40rem){table{font-size:13px}td,th{padding-right:8px}.latency :is(td,th):nth-child(3){display:none}}`

/** Nothing is loaded, nothing runs, and no other page shows it in a frame. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const documentOf = (main: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Mayfly, for its operator</title><style>${STYLE}</style></head>
<body><main>${main}
</main></body></html>
`
