/** Chromium from npm. A test fails if its page logs an error or violates its content security policy. */
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
  type BrowserContextOptions,
  type Page,
  chromium as playwright,
} from 'playwright-core'
import type { After } from './folder.ts'
import { startServer, type TestServer } from './server.ts'

/** Flags besides Playwright's. The package's own list would switch web security off. */
const FLAGS = ['--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none']

const require = createRequire(import.meta.url)
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const CHROMIUM = '@sparticuz/chromium'

/** An order is 402 until it is paid. */
const UNPAID = /status of 402/
/** Long enough for a page on a busy machine. */
const TIMEOUT_MS = 60_000

export const WIDE = { width: 1280, height: 900 }
export const NARROW = { width: 360, height: 740 }

/** `expected` matches allowed messages on the console: Chromium logs every answer that is not 2xx. */
export type VisitOptions = BrowserContextOptions & { expected?: RegExp }

let sites = 0
let shared: Promise<Browser> | undefined

/**
 * Starts a server for the suite that calls this in its body, and a browser that all suites of a process share:
 * each visit has a context of its own. The last suite closes the browser.
 */
export function startSite(environment: Record<string, string> = {}) {
  sites++
  let server: TestServer | null = null
  let browser: Browser | null = null
  const works: (() => unknown)[] = []
  const end: After = { after: (work) => works.push(work) }
  before(async () => {
    server = await startServer(end, environment)
    shared ??= launch()
    browser = await shared
  })
  // Inside of `before`, this hook would run at the end of `before`.
  after(async () => {
    for (const work of works.toReversed()) await work()
    sites--
    if (sites > 0) return
    const open = await shared
    shared = undefined
    await open?.close()
  })
  return {
    get server(): TestServer {
      if (!server) throw new Error('the suite has not begun')
      return server
    },
    visit(t: After, options?: VisitOptions) {
      if (!browser) throw new Error('the suite has not begun')
      return visit(t, browser, options)
    },
  }
}

/** Starts a browser that ends with the test. */
export async function startBrowser(t: After): Promise<Browser> {
  const browser = await launch()
  t.after(() => browser.close())
  return browser
}

async function launch(): Promise<Browser> {
  return playwright.launch({
    executablePath: join(await unpackedChromium(), 'chromium'),
    chromiumSandbox: false,
    timeout: 2 * TIMEOUT_MS,
    args: FLAGS,
  })
}

/**
 * The folder with the browser, unpacked once. The package unpacks into the folder for temporary files and
 * trusts what it finds there, so a test file could start a browser that another file is still unpacking.
 * Here each test file unpacks into a new folder, and the first one renames it to the final name.
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

/** Opens a page for a new user, without anything stored by other visits. */
export async function visit(
  t: After,
  browser: Browser,
  { expected = UNPAID, ...options }: VisitOptions = {},
) {
  const context = await browser.newContext({ viewport: WIDE, ...options })
  context.setDefaultTimeout(TIMEOUT_MS)
  const page = await context.newPage()
  // At its end, the test asserts that there are none.
  const complaints: string[] = []
  page.on('console', (message) => {
    const isLoud = message.type() === 'error' || message.type() === 'warning'
    // Chromium logs each answer that is not 2xx. Some of these belong to the protocol.
    const isExpected = expected.test(message.text())
    if (isLoud && !isExpected) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  t.after(async () => {
    // A handler that still fetches when the context closes rejects, and nobody could catch that.
    if (!page.isClosed()) await page.unrouteAll({ behavior: 'wait' })
    await context.close()
    if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join('\n')}`)
  })
  return { page, context, complaints }
}

/** A person or a policy has switched the browser's storage off. */
export function blockStorage(page: Page): Promise<unknown> {
  return page.addInitScript(() => {
    for (const name of ['localStorage', 'sessionStorage']) {
      Object.defineProperty(globalThis, name, {
        get: () => {
          throw new DOMException('blocked', 'SecurityError')
        },
      })
    }
  })
}

/** The serious and critical findings of axe-core, a line each. */
export function seriousFaults(page: Page): Promise<string[]> {
  return faults(page, ['serious', 'critical'])
}

/** Every finding of axe-core, a line each, best practices included. */
export function allFaults(page: Page): Promise<string[]> {
  return faults(page, ['minor', 'moderate', 'serious', 'critical'])
}

async function faults(page: Page, impacts: string[]): Promise<string[]> {
  const session = await page.context().newCDPSession(page)
  // The page's content security policy would refuse a script element.
  await session.send('Runtime.evaluate', { expression: AXE })
  const { result } = await session.send('Runtime.evaluate', {
    expression: `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.filter(({ impact }) => ${JSON.stringify(impacts)}.includes(impact))
        .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target + ': ' + failureSummary)))`,
    awaitPromise: true,
    returnByValue: true,
  })
  await session.detach()
  return result.value as string[]
}

/** How far the layout has shifted (web.dev/cls): 0 if nothing moved. */
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
