/**
 * `npm run screenshots`: takes the pictures that the documents show into docs/images/, on the simulator. With names, it
 * takes these in each size and scheme into .cache/pictures/: `npm run screenshots -- whisper pulse`.
 */
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import type { PulseHolder } from '../src/client/index.ts'
import { NARROW, startBrowser, visit, WIDE } from '../test/support/browser.ts'
import { register } from '../test/support/gate.ts'
import { shownKey } from '../test/support/pages.ts'
import { live } from '../test/support/pulse.ts'
import { startServer, type TestServer } from '../test/support/server.ts'

const SHOWN_FOLDER = new URL('../docs/images/', import.meta.url).pathname
const FOLDER = new URL('../.cache/pictures/', import.meta.url).pathname
/** What the documents show: eight at most. */
const SHOWN = ['catch-wide-light', 'catch-wide-dark', 'whisper-wide-light', 'pulse-wide-light']
const HOOK =
  '{"action":"opened","number":7,"repository":{"name":"mayfly","private":false},"labels":["bug","good first issue"]}'
const REQUESTS = [
  { path: '/github?delivery=7', type: 'application/json', body: HOOK },
  { path: '/shop', type: 'application/x-www-form-urlencoded', body: 'order=1042&state=paid' },
  { path: '/health', type: 'text/plain', body: 'still here' },
]

/** The pictures. Each function does what a user does before the picture is taken. */
const PICTURES: Record<string, (page: Page, server: TestServer) => Promise<unknown>> = {
  home: async (page) => {
    for (let i = 0; i < 3; i++) await page.getByRole('button', { name: 'Send a request' }).click()
  },
  buy: async (page) => {
    await page.getByRole('link', { name: 'Buy an inbox' }).click()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
  },
  pay: async (page) => {
    await page.getByRole('link', { name: 'Buy an inbox' }).click()
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('img', { name: /QR code/ }).waitFor()
  },
  paid: buyInbox,
  'catch-empty': async (page) => {
    await buyInbox(page)
    await page.getByRole('button', { name: 'Save and open' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
  },
  catch: async (page) => {
    await buyInbox(page)
    await page.getByRole('button', { name: 'Save and open' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    const address = await page.locator('.inbox-address code').innerText()
    for (const { path, type, body } of REQUESTS.toReversed()) {
      const headers = { 'content-type': type, 'user-agent': 'sender/1.0' }
      await fetch(address + path, { method: 'POST', headers, body })
    }
    await page.getByText('3 of 100', { exact: true }).waitFor()
    await page.getByRole('button', { name: /github/ }).click()
  },
  whisper: async (page) => {
    await page.getByRole('link', { name: 'Write a secret' }).click()
    await page.getByRole('button', { name: /^Spark/ }).waitFor()
    await page.getByLabel('Text', { exact: true }).fill('The key is under the third pot.')
    await page.getByLabel('Password (optional)').fill('geranium')
  },
  'whisper-code': buyWhisper,
  'whisper-reveal': async (page) => {
    const code = await buyWhisper(page)
    await page.getByRole('button', { name: 'Copy the code' }).click()
    await page.getByRole('button', { name: 'Write another' }).click()
    await page.getByRole('link', { name: 'Read a secret' }).click()
    await page.getByLabel('Share code').fill(code)
    await page.getByText('Revealing it uses one read').waitFor()
  },
  'whisper-read': async (page) => {
    const code = await buyWhisper(page)
    await page.getByRole('button', { name: 'Copy the code' }).click()
    await page.getByRole('button', { name: 'Write another' }).click()
    await page.getByRole('link', { name: 'Read a secret' }).click()
    await page.getByLabel('Share code').fill(code)
    await page.getByRole('button', { name: 'Reveal it' }).click()
    await page.getByRole('group', { name: 'The text' }).waitFor()
  },
  receipt: async (page) => {
    await page.getByRole('link', { name: 'Write a secret' }).click()
    await page.getByLabel('Text', { exact: true }).fill('The key is under the third pot.')
    await page.getByText('More: receipt, opening time, switch').click()
    await page.getByLabel('With a receipt').check()
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('button', { name: 'Copy message' }).click()
    await page.getByRole('button', { name: 'Save the receipt' }).click()
    await page.getByRole('button', { name: 'Open receipt' }).click()
    await page.getByRole('heading', { name: 'Not read yet' }).waitFor()
  },
  docs: async (page) => {
    await page.getByRole('link', { name: 'Docs' }).click()
    await page.locator('.operations').waitFor()
  },
  gate: async (page) => {
    // GATE is off by default, so it needs its own server.
    const server = await startServer(end, { MAYFLY_GATE: 'on' })
    const gate = server.mayfly.gate(await register(server))
    const quote = await gate.intent({ route: 'render', method: 'POST', path: '/render/cat?size=2' })
    const outcome = await gate.prove(quote.intentId, await server.pay(quote.bolt11))
    await page.goto(`${server.url}/gate`)
    await page.getByRole('textbox').fill(outcome.settled ? outcome.receipt : '')
    await page.getByText('The signature is valid').waitFor()
  },
  pulse: async (page, server) => {
    const holder = await buyMonitor(page)
    await pingEachMinute(server, holder)
    await page.getByLabel('Name', { exact: true }).fill('Backup of the shop')
    await page.getByLabel('Description').fill('Every minute, from the cellar')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Share the status' }).click()
    await page.getByRole('group', { name: 'the badge in Markdown' }).waitFor()
    await page.getByText('Saved.', { exact: true }).waitFor({ state: 'detached' })
  },
  'pulse-late': async (page, server) => {
    const holder = await buyMonitor(page)
    await pingEachMinute(server, holder)
    await live(server, 5 * 60_000)
    await page.getByText('Late', { exact: true }).waitFor()
  },
  status: async (page, server) => {
    await PICTURES.pulse?.(page, server)
    await page.getByRole('link', { name: 'Open the status page' }).click()
    await page.getByText('Operational', { exact: true }).waitFor()
  },
}

/** Pictures of only the first screen, because the rest is in another picture or very long. */
const FIRST_SCREEN = new Set(['pulse-late', 'docs'])

const works: (() => unknown)[] = []
const end = { after: (work: () => unknown) => works.push(work) }
try {
  const wanted = process.argv.slice(2)
  const folder = wanted.length > 0 ? FOLDER : SHOWN_FOLDER
  mkdirSync(folder, { recursive: true })
  const server = await startServer(end)
  const { url } = server
  const browser = await startBrowser(end)
  for (const [name, show] of Object.entries(PICTURES)) {
    for (const [size, viewport] of Object.entries({ wide: WIDE, narrow: NARROW })) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const picture = `${name}-${size}-${colorScheme}`
        if (wanted.length > 0 ? !wanted.includes(name) : !SHOWN.includes(picture)) continue
        const { page } = await visit(end, browser, { viewport, colorScheme })
        await page.goto(url)
        await show(page, server)
        // Moves the mouse away, so that no element shows its hover style.
        await page.mouse.move(0, 0)
        await page.screenshot({
          path: `${folder}${picture}.png`,
          fullPage: !FIRST_SCREEN.has(name),
        })
        // Later pictures move the clock, and what this page shows would expire.
        await page.context().close()
      }
    }
  }
} finally {
  for (const work of works.toReversed()) await work()
}

async function buyInbox(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Buy an inbox' }).click()
  await page.getByRole('button', { name: /^Spark/ }).click()
  await page.getByRole('button', { name: 'Pay (simulator)' }).click()
  await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
}

async function buyWhisper(page: Page): Promise<string> {
  await page.getByRole('link', { name: 'Write a secret' }).click()
  await page.getByLabel('Text', { exact: true }).fill('The key is under the third pot.')
  await page.getByRole('button', { name: /^Spark/ }).click()
  await page.getByRole('button', { name: 'Pay (simulator)' }).click()
  await page.getByText('Other ways to pass on the code').click()
  return page.getByRole('group', { name: 'The share code' }).innerText()
}

async function buyMonitor(page: Page): Promise<PulseHolder> {
  await page.getByRole('link', { name: 'Buy a monitor' }).click()
  await page.getByRole('button', { name: /^Spark/ }).click()
  await page.getByRole('button', { name: 'Pay (simulator)' }).click()
  const text = await shownKey(page)
  await page.getByRole('button', { name: 'Save and open' }).click()
  await page.getByText('Live', { exact: true }).waitFor()
  return JSON.parse(text) as PulseHolder
}

/** Pings once a minute, and misses a few minutes. */
async function pingEachMinute(server: TestServer, holder: PulseHolder): Promise<void> {
  const job = server.mayfly.pulse(holder)
  for (let minute = 0; minute < 45; minute++) {
    await live(server, minute === 20 ? 6 * 60_000 : 60_000)
    await job.ping()
  }
}
