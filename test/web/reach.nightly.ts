/** What every page owes to every reader, in each state that a person gets it into. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { allFaults, startSite } from '../support/browser.ts'
import { anInbox } from '../support/catch.ts'
import { aSecret, openLive, openWithoutSaving, write } from '../support/pages.ts'
import { aMonitor, live } from '../support/pulse.ts'

/** Of a phone, and of the smallest one (WCAG 1.4.10). */
const WIDTHS = [390, 320]
const HEIGHT = 844
/** WCAG 2.5.5: 44 pixels. Half a pixel may be lost in a layout. */
const MIN_TARGET = 43.5
/** What a browser loads of a page before it does anything. */
const MAX_PAGE_BYTES = 90 * 1024
const NOBODYS_STATUS = '/status/pulse_status_0000000000000000000000'

suite('each page in each state', () => {
  const site = startSite({ MAYFLY_GATE: 'on' })

  /** Each gets its page into one state. */
  const STATES: Record<string, (page: Page) => Promise<unknown>> = {
    'the front page': async (page) => {
      await page.goto(site.server.url)
      await page.locator('.prices a').nth(8).waitFor()
    },
    'the front page with kept things': async (page) => {
      await bought(page, 'pulse')
      await page.getByRole('button', { name: 'Save and open' }).click()
      await page.getByText('Live', { exact: true }).waitFor()
      await page.goto(site.server.url)
      await page.getByRole('button', { name: 'Open Monitor 1' }).waitFor()
    },
    plans: async (page) => {
      await page.goto(`${site.server.url}/buy`)
      await page.getByRole('button', { name: /^Spark/ }).waitFor()
    },
    'an invoice': async (page) => {
      await page.goto(`${site.server.url}/buy`)
      await page.getByRole('button', { name: /^Spark/ }).click()
      await page.getByRole('img', { name: /QR code/ }).waitFor()
    },
    'a capability': (page) => bought(page, 'catch'),
    'no inbox': (page) => page.goto(`${site.server.url}/catch`),
    'an empty inbox with its menu': async (page) => {
      await opened(page, 'catch')
      await page.getByText('More', { exact: true }).click()
    },
    'an inbox with a request': async (page) => {
      const capability = await anInbox(site.server)
      const sent = await fetch(
        `${site.server.url}/c/${capability.publicId}/a-long-${'path'.repeat(40)}?q=1`,
        {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-long': 'a'.repeat(400) },
          body: JSON.stringify({
            action: 'opened',
            long: 'b'.repeat(400),
            deep: { list: [1, 2, 3] },
          }),
        },
      )
      assert.ok(sent.ok)
      await openLive(page, capability, site.server)
      await page.locator('.events button').first().click()
      await page.getByText('opened').first().waitFor()
    },
    'a draft of a whisper': async (page) => {
      await page.goto(`${site.server.url}/whisper`)
      await page.getByRole('button', { name: /^Spark/ }).waitFor()
    },
    'the code of a whisper': whispered,
    'no whisper': (page) => page.goto(`${site.server.url}/read`),
    'a whisper that waits': async (page) => {
      const { code } = await aSecret(site.server, {
        data: Buffer.from('under the pot'),
        mediaType: 'text/plain',
      })
      await page.goto(`${site.server.url}/read`)
      await page.getByLabel('Share code').fill(code)
      await page.getByRole('button', { name: /^Reveal/ }).waitFor()
    },
    'a whisper that was read': async (page) => {
      await STATES['a whisper that waits']?.(page)
      await page.getByRole('button', { name: /^Reveal/ }).click()
      await page.getByText('under the pot').first().waitFor()
    },
    'no monitor': (page) => page.goto(`${site.server.url}/pulse`),
    'a monitor that waits': (page) => opened(page, 'pulse'),
    'a monitor that is late and shared': async (page) => {
      const capability = await aMonitor(site.server)
      const job = site.server.mayfly.pulse(capability)
      await job.update({
        name: 'n'.repeat(80),
        description: 'd'.repeat(240),
        publicStatusEnabled: true,
        expectedIntervalSeconds: 90,
      })
      for (const minutes of [0, 1, 4, 1]) {
        await live(site.server, minutes * 60_000)
        await job.ping()
      }
      await live(site.server, 3 * 60_000)
      await openLive(page, capability, site.server)
      await page.getByText('Late', { exact: true }).waitFor()
      await page.locator('.day .late').waitFor()
    },
    'a shared status': (page) => shared(page),
    'a shared status without its server': async (page) => {
      await shared(page)
      await page.route('**/api/pulse/public/**', (route) => route.abort())
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
      await page.getByText(/This is the last known state, as of /).waitFor()
    },
    'a status that nobody shares': async (page) => {
      await page.goto(site.server.url + NOBODYS_STATUS)
      await page.getByRole('heading', { name: 'Nothing is shared here' }).waitFor()
    },
    'a receipt that is none': async (page) => {
      await page.goto(`${site.server.url}/gate`)
      await page.getByRole('textbox').fill('x'.repeat(300))
      await page.getByRole('alert').waitFor()
    },
    'the way back to a payment': async (page) => {
      await page.goto(`${site.server.url}/recover`)
      await page.getByLabel('Recovery text, or the whole invoice').fill(`lnbc${'1'.repeat(300)}`)
      await page.getByLabel('Preimage, or proof of payment').waitFor()
    },
    'the reference': async (page) => {
      await page.goto(`${site.server.url}/docs`)
      await page.locator('.operation').nth(10).waitFor()
    },
    'an address where nothing is': (page) => page.goto(`${site.server.url}/nothing/here`),
  }

  for (const [name, show] of Object.entries(STATES)) {
    test(`${name}: axe finds nothing, text of twice the size fits, and a thumb can press everything`, async (t) => {
      const { page } = await site.visit(t, {
        viewport: { width: 390, height: HEIGHT },
        // A phone: its pointer is coarse.
        isMobile: true,
        hasTouch: true,
        expected: /status of 40[24]|ERR_FAILED/,
      })
      await show(page)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        assert.deepEqual(await allFaults(page), [], colorScheme)
      }
      assert.deepEqual(await smallTargets(page), [])
      await page.evaluate(() => {
        document.documentElement.style.fontSize = '200%'
      })
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: HEIGHT })
        assert.deepEqual(await tooWide(page, width), [])
      }
    })
  }

  test('forced colours leave the mark of each state to be seen', async (t) => {
    const { page } = await site.visit(t, { forcedColors: 'active' })
    await opened(page, 'pulse')
    const waiting = await markOf(page)
    await page.getByRole('button', { name: 'Ping now' }).click()
    await page.getByText('Operational', { exact: true }).waitFor()
    const operational = await markOf(page)
    await live(site.server, 3 * 60_000)
    await page.getByText('Late', { exact: true }).waitFor()
    const late = await markOf(page)
    assert.notEqual(waiting.edge, waiting.ground, 'a mark has an edge that stands out')
    assert.match(waiting.fill, /, 0\)$/, 'hollow')
    assert.notEqual(operational.fill, operational.ground, 'full')
    assert.notEqual(late.radius, operational.radius, 'not round')
    assert.deepEqual(await allFaults(page), [])
  })

  for (const path of [
    ...['/', '/buy', '/catch', '/whisper', '/read', '/pulse', '/gate', '/docs'],
    NOBODYS_STATUS,
  ]) {
    test(`${path} weighs at most 90 KB with all that it loads`, async (t) => {
      const { page } = await site.visit(t, { expected: /status of 404/ })
      const sizes: Promise<number>[] = []
      page.on('requestfinished', (request) => {
        sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize))
      })
      await page.goto(site.server.url + path, { waitUntil: 'networkidle' })
      const bytes = (await Promise.all(sizes)).reduce((sum, some) => sum + some, 0)
      assert.ok(bytes > 10_000, `${bytes} bytes`)
      assert.ok(bytes <= MAX_PAGE_BYTES, `${bytes} bytes`)
    })
  }

  async function bought(page: Page, product: 'catch' | 'pulse'): Promise<void> {
    await page.goto(`${site.server.url}/buy#${product}`)
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByText('Other ways', { exact: true }).waitFor()
  }

  async function opened(page: Page, product: 'catch' | 'pulse'): Promise<void> {
    await bought(page, product)
    await openWithoutSaving(page)
    await page.getByText('Live', { exact: true }).waitFor()
  }

  async function whispered(page: Page): Promise<void> {
    await write(page, 'under the pot', site.server)
    await page.getByRole('button', { name: /^Spark/ }).click()
    await page.getByRole('button', { name: 'Pay (simulator)' }).click()
    await page.getByRole('group', { name: 'The message' }).waitFor()
  }

  async function shared(page: Page): Promise<void> {
    const job = site.server.mayfly.pulse(await aMonitor(site.server))
    await job.ping()
    const { publicStatusId } = await job.update({ name: 'backup', publicStatusEnabled: true })
    await page.goto(`${site.server.url}/status/${publicStatusId}`)
    await page.getByText('Operational', { exact: true }).waitFor()
  }
})

/** What makes the page scroll sideways, the innermost elements first; nothing if it does not. */
function tooWide(page: Page, width: number): Promise<string[]> {
  return page.evaluate((width) => {
    if (document.documentElement.scrollWidth <= width) return []
    return [...document.querySelectorAll<HTMLElement>('body *')]
      .filter(
        (element) =>
          element.getBoundingClientRect().right > width + 0.5 ||
          element.scrollWidth > element.clientWidth + 1,
      )
      .map((element) => `${element.outerHTML.slice(0, 120)}: ${element.scrollWidth} in ${width}`)
      .reverse()
      .slice(0, 8)
  }, width)
}

/** The controls that are smaller than a finger. Links within a sentence may be as high as its line. */
function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate((min) => {
    const controls = document.querySelectorAll<HTMLElement>(
      'a, button, input, select, textarea, summary',
    )
    return [...controls].flatMap((control) => {
      const { display, visibility } = getComputedStyle(control)
      // A bar of the activity is as wide as its minute, and the search does what it does.
      const isInSentence = display === 'inline' || control.matches('.link, .bar')
      // A box with its label around it, or after it, is pressed by the label.
      const around = control.closest('label') ?? control
      const { width, height } = around.getBoundingClientRect()
      const isSeen = width > 1 && height > 1 && visibility === 'visible'
      if (!isSeen || isInSentence || (width >= min && height >= min)) return []
      return [`${control.outerHTML.slice(0, 120)}: ${Math.floor(width)} × ${Math.floor(height)}`]
    })
  }, MIN_TARGET)
}

type Mark = { edge: string; fill: string; radius: string; ground: string }

function markOf(page: Page): Promise<Mark> {
  return page.locator('.monitor-state .state').evaluate((state) => {
    const { borderTopColor, backgroundColor, borderTopLeftRadius } = getComputedStyle(
      state,
      '::before',
    )
    return {
      edge: borderTopColor,
      fill: backgroundColor,
      radius: borderTopLeftRadius,
      ground: getComputedStyle(document.documentElement).backgroundColor,
    }
  })
}
