/** Real Chromium, out of npm. A page that says an error or breaks its policy fails its test. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { promisify } from 'node:util'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
  chromium as playwright,
} from 'playwright-core'
import type { After } from './folder.ts'
import { startServer, type TestServer } from './server.ts'

/** The package's own list switches web security off, so this is ours, besides Playwright's. */
const FLAGS = ['--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none']

const require = createRequire(import.meta.url)
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const CHROMIUM = '@sparticuz/chromium'

/** An order is 402 until it is paid. */
const UNPAID = /status of 402/
/** A page that has not answered by then never will, on a busy machine either. */
const TIMEOUT_MS = 60_000

export const WIDE = { width: 1280, height: 900 }
export const NARROW = { width: 360, height: 740 }

export type Visit = {
  page: Page
  context: BrowserContext
  /** What the page complained of so far; the test's end asserts that there is nothing. */
  complaints: string[]
}

/** `expected` is what the console may say: answers that are no 2xx, which Chromium tells of. */
export type VisitOptions = BrowserContextOptions & { expected?: RegExp }

export type Site = {
  server: TestServer
  /** A person of their own: nothing kept from another visit. */
  visit(t: After, options?: VisitOptions): Promise<Visit>
}

/** A server and a browser for the suite that calls this in its body, until its end. */
export function startSite(environment: Record<string, string> = {}): Site {
  let server: TestServer | null = null
  let browser: Browser | null = null
  const works: (() => unknown)[] = []
  const end: After = { after: (work) => works.push(work) }
  before(async () => {
    server = await startServer(end, environment)
    browser = await startBrowser(end)
  })
  // Not within `before`, where it would be the end of that hook.
  after(async () => {
    for (const work of works.toReversed()) await work()
  })
  return {
    get server() {
      if (!server) throw new Error('the suite has not begun')
      return server
    },
    visit(t, options) {
      if (!browser) throw new Error('the suite has not begun')
      return visit(t, browser, options)
    },
  }
}

/** One browser for a file. */
export async function startBrowser(t: After): Promise<Browser> {
  const browser = await playwright.launch({
    executablePath: join(await unpackedChromium(), 'chromium'),
    chromiumSandbox: false,
    timeout: 2 * TIMEOUT_MS,
    args: FLAGS,
  })
  t.after(() => browser.close())
  return browser
}

/**
 * The folder with the browser, unpacked once. The package unpacks into the folder for temporary files
 * and takes what it finds there for whole, so of test files that begin together one would start what
 * another is still writing. Here each unpacks into a folder of its own, and the first gives it the name.
 */
async function unpackedChromium(): Promise<string> {
  const packed = `file://${require.resolve(CHROMIUM)}`
  const { version } = JSON.parse(readFileSync(new URL('../package.json', packed), 'utf8')) as {
    version: string
  }
  const folder = join(tmpdir(), `mayfly-chromium-${version}-${userInfo().uid}`)
  if (existsSync(folder)) return folder
  const draft = await mkdtemp(`${folder}-`)
  const unpack = `await (await import('${packed}')).default.executablePath()`
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', unpack], {
    env: { ...process.env, TMPDIR: draft },
  })
  await rename(draft, folder).catch(async (error: unknown) => {
    await rm(draft, { recursive: true })
    if (!existsSync(folder)) throw error
  })
  return folder
}

/** A person of their own: nothing kept from another visit. */
export async function visit(
  t: After,
  browser: Browser,
  { expected = UNPAID, ...options }: VisitOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: WIDE, ...options })
  context.setDefaultTimeout(TIMEOUT_MS)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    const isLoud = message.type() === 'error' || message.type() === 'warning'
    // Chromium says so of each answer that is no 2xx, and some are the protocol's own.
    const isExpected = expected.test(message.text())
    if (isLoud && !isExpected) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  t.after(async () => {
    await context.close()
    if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join('\n')}`)
  })
  return { page, context, complaints }
}

/** What axe-core finds serious or worse, a line each. */
export async function seriousFaults(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page)
  // Not through the page's own scripts, whose policy would refuse it.
  await session.send('Runtime.evaluate', { expression: AXE })
  const { result } = await session.send('Runtime.evaluate', {
    expression: `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target + ': ' + failureSummary)))`,
    awaitPromise: true,
    returnByValue: true,
  })
  await session.detach()
  return result.value as string[]
}

/** How far things jumped so far (web.dev/cls): 0 where nothing did. */
export function layoutShift(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        let sum = 0
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries())
            sum += (entry as unknown as { value: number }).value
        }).observe({ type: 'layout-shift', buffered: true })
        requestAnimationFrame(() => setTimeout(() => resolve(sum), 50))
      }),
  )
}
