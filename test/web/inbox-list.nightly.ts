import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { suspendInbox } from '../../src/catch/store.ts'
import type { CatchCapability } from '../../src/client/index.ts'
import { layoutShift, seriousFaults, startSite, WIDE } from '../support/browser.ts'
import { anInbox, asOperator } from '../support/catch.ts'
import {
  focused,
  linesOf,
  openKey,
  openLive,
  pressInMenu,
  sendTo,
  visitLive,
} from '../support/pages.ts'
import { until } from '../support/until.ts'

const LAPTOP = { width: 1366, height: 768 }
const PHONE = { width: 390, height: 844 }
const LARGE = { width: 1600, height: 900 }

suite('the list of an inbox', () => {
  const site = startSite()

  // Widths move things and schemes colour them.
  for (const [viewport, colorScheme] of [
    [LAPTOP, 'light'],
    [PHONE, 'dark'],
    [LARGE, 'light'],
  ] as const) {
    const { width, height } = viewport
    test(`the first request is on the first screen at ${width} × ${height} ${colorScheme}, and nothing jumps as requests come`, async (t) => {
      const inbox = await withEvents(2)
      const { page } = await visitLive(site, t, inbox, { viewport, colorScheme })
      await page.reload()
      await page.getByText('Live', { exact: true }).waitFor()
      const box = await linesOf(page).first().boundingBox()
      assert.ok(box && box.y + box.height < height, `${box?.y}`)
      await send(inbox, '/third')
      await page.getByRole('button', { name: /third/ }).waitFor()
      await page.getByText('3 of 100', { exact: true }).waitFor()
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width)
      assert.ok((await layoutShift(page)) < 0.1)
      assert.deepEqual(await seriousFaults(page), [])
    })
  }

  test('the width of a wide screen is used, and list and request scroll each by itself', async (t) => {
    const inbox = await withEvents(60)
    const { page } = await visitLive(site, t, inbox, { viewport: LARGE })
    const detail = await page.getByRole('region', { name: 'The request' }).boundingBox()
    assert.ok(detail && detail.x + detail.width > 1550, `${detail?.x} ${detail?.width}`)
    const [far, list] = [
      page.getByRole('button', { name: /event-5 / }),
      page.locator('.list-scroll'),
    ]
    await list.hover()
    await page.mouse.wheel(0, 100_000)
    await page.waitForFunction(() => document.querySelector('.list-scroll')?.scrollTop)
    await far.click()
    await title(page, '/event-5').waitFor()
    assert.equal(await page.evaluate(() => scrollY), 0, 'the page stays')
    const line = await page.getByRole('button', { name: /event-5 / }).boundingBox()
    assert.ok(line && line.y > 0 && line.y < LARGE.height, 'as does the list')
  })

  test('the newest request is shown until one is chosen or read in, and again after Escape', async (t) => {
    const inbox = await withEvents(1)
    const { page } = await visitLive(site, t, inbox)
    await title(page, '/event-1').waitFor()
    await send(inbox, '/newer')
    await title(page, '/newer').waitFor()
    await page.getByRole('button', { name: /event-1 / }).click()
    await title(page, '/event-1').waitFor()
    await send(inbox, '/newest')
    await page.getByRole('button', { name: /newest/ }).waitFor()
    assert.equal(await title(page, '/event-1').count(), 1)
    await page.keyboard.press('Escape')
    await title(page, '/newest').waitFor()

    const body = page.getByRole('group', { name: 'Body', exact: true })
    await body.click()
    await body.evaluate((text) => getSelection()?.selectAllChildren(text))
    await send(inbox, '/while-reading')
    await page.getByRole('button', { name: /while-reading/ }).waitFor()
    assert.equal(await title(page, '/newest').count(), 1)
    assert.match(await page.evaluate(() => String(getSelection())), /\{\}/, 'it stays selected')
  })

  test('on a phone the Back of the browser leads from a request to its line, and not out of the inbox', async (t) => {
    const inbox = await withEvents(30)
    const { page } = await visitLive(site, t, inbox, { viewport: PHONE })
    await page.getByRole('button', { name: /event-27 / }).click()
    await title(page, '/event-27').waitFor()
    assert.equal(await page.evaluate(() => scrollY), 0)
    assert.equal(await linesOf(page).first().isVisible(), false)
    await page.goBack()
    await title(page, '/event-27').waitFor({ state: 'detached' })
    assert.match(await focused(page), /\/event-27/)
    const line = await page.getByRole('button', { name: /event-27 / }).boundingBox()
    assert.ok(line && line.y > 0 && line.y < PHONE.height, `${line?.y}`)
    await page.goForward()
    await title(page, '/event-27').waitFor()
    await page.getByRole('button', { name: 'Back to the list' }).click()
    await linesOf(page).first().waitFor()
    assert.match(page.url(), /\/catch$/)

    const scrolled = () => page.locator('.list-scroll').evaluate((list) => list.scrollTop)
    await page.getByRole('button', { name: /event-30 / }).click()
    await page.getByRole('button', { name: 'Back to the list' }).click()
    await until('the keyboard is back', async () => /event-30/.test(await focused(page)))
    assert.equal(await scrolled(), 0, 'the list stands where it stood')
    await page.getByRole('button', { name: /event-30 / }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await until('the next has the keyboard', async () => /event-29/.test(await focused(page)))
    assert.equal(await scrolled(), 0)
  })

  test('older requests load as one scrolls, 50 at a time, and only the rows in view are drawn', async (t) => {
    const inbox = await withEvents(130, 'standard')
    const { page } = await site.visit(t)
    const pages: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('/events?')) pages.push(new URL(request.url()).search)
    })
    await open(page, inbox)
    await page.evaluate(() => {
      const list = document.querySelector('.list-scroll')
      setInterval(() => list?.scrollTo(0, list.scrollHeight), 5)
    })
    await page.getByRole('button', { name: /event-1 / }).waitFor()
    const last = page
      .getByRole('listitem')
      .filter({ has: page.getByRole('button', { name: /event-1 / }) })
    assert.equal(await last.getAttribute('aria-posinset'), '130')
    assert.ok((await linesOf(page).count()) < 60)
    assert.ok(pages.length <= 3 && pages.every((search) => search.includes('limit=50')), `${pages}`)
    await page.getByRole('button', { name: 'Load older requests' }).waitFor({ state: 'detached' })
  })

  test('older requests that could not be loaded are asked for again by their person alone', async (t) => {
    const inbox = await withEvents(60, 'standard')
    const { page } = await site.visit(t, { expected: /status of 404/ })
    const refused: string[] = []
    await page.route(/events\?.*cursor=/, (route) => {
      refused.push(route.request().url())
      return route.fulfill({ status: 404, json: { error: 'not found' } })
    })
    await open(page, inbox)
    await page.locator('.list-scroll').evaluate((list) => list.scrollTo(0, list.scrollHeight))
    await page.getByText('The service has nothing for this key').waitFor()
    for (let frame = 0; frame < 5; frame++) {
      await page.evaluate(() => new Promise(requestAnimationFrame))
    }
    assert.equal(refused.length, 1)
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Load older requests' }).click()
    await page.getByRole('button', { name: 'Load older requests' }).waitFor({ state: 'detached' })
  })

  test('a time leads to the requests from then and before, and back to the newest', async (t) => {
    const inbox = await withEvents(60, 'standard')
    const { page } = await visitLive(site, t, inbox)
    await page.getByRole('button', { name: 'Go to a time' }).click()
    assert.deepEqual(await seriousFaults(page), [])
    await page.getByRole('button', { name: 'Oldest requests' }).click()
    await page.getByText('Older requests.').waitFor()
    await send(inbox, '/newer')
    await page.getByText('1 new request.').waitFor()
    await page.getByRole('button', { name: 'Back to the newest' }).click()
    await page.getByRole('button', { name: /newer/ }).waitFor()
  })

  test('a search that fails leaves the rows from before, and a filter and its rows change together', async (t) => {
    const inbox = await withEvents(3)
    const { page } = await visitLive(site, t, inbox, { expected: /status of 40[04]|ERR_FAILED/ })
    await page.route('**/events?q=*', (route) =>
      route.fulfill({ status: 404, json: { error: 'not found' } }),
    )
    await page.getByLabel('Search').fill('event-2')
    await page.getByText('The list shows the previous filter.').waitFor()
    assert.equal(await linesOf(page).count(), 3)
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Try again' }).click()
    await linesOf(page).nth(1).waitFor({ state: 'detached' })
    // What is searched for is marked.
    assert.equal(await linesOf(page).count(), 1)
  })

  test('at most eight Tabs lead from the skip link to the first request', async (t) => {
    const inbox = await withEvents(3)
    const { page } = await visitLive(site, t, inbox)
    await page.reload()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    for (let tabs = 2; ; tabs++) {
      assert.ok(tabs <= 8, await focused(page))
      await page.keyboard.press('Tab')
      if (/event-3/.test(await focused(page))) break
    }
  })

  test('the keyboard walks, searches, copies, deletes and takes back, and no letter does anything', async (t) => {
    const inbox = await withEvents(4)
    const { page } = await site.visit(t)
    await page.addInitScript(() => {
      navigator.clipboard.writeText = async (text) => void Object.assign(globalThis, { text })
    })
    await open(page, inbox)
    await linesOf(page).first().getByRole('button').focus()
    await page.keyboard.press('ArrowDown')
    await title(page, '/event-3').waitFor()
    await page.keyboard.press('ArrowDown')
    await title(page, '/event-2').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('ArrowUp')
    await title(page, '/event-4').waitFor()
    await page.getByRole('button', { name: 'Copy body' }).press('Enter')
    await page.getByText('Copied', { exact: true }).first().waitFor()
    assert.equal(
      await page.evaluate(() => (globalThis as unknown as { text: string }).text),
      '{"number":4}',
    )
    await page.getByLabel('Search').focus()
    await page.keyboard.type('jjc/event-2')
    await page.getByText('No requests match.').waitFor()
    await page.keyboard.press('Escape')
    await linesOf(page).nth(3).waitFor()
    assert.equal(await page.getByLabel('Search').inputValue(), '')
    await page.keyboard.press('Escape')
    assert.match(await focused(page), /event-4/)
    await page.getByRole('button', { name: 'Delete', exact: true }).press('Enter')
    await title(page, '/event-3').waitFor()
    assert.equal(await linesOf(page).count(), 3)
    await page.getByRole('button', { name: 'Undo' }).press('Enter')
    await linesOf(page).nth(3).waitFor()
    await title(page, '/event-4').waitFor()
    const { acceptedRequestCount } = await site.server.mayfly.catch(inbox).status()
    assert.equal(acceptedRequestCount, 4)
    assert.equal((await site.server.mayfly.catch(inbox).page()).events.length, 4)
  })

  test('a deleted request is gone after the time to undo, and also if the page is left before', async (t) => {
    const inbox = await withEvents(3)
    const stored = async () => (await site.server.mayfly.catch(inbox).page()).events.length
    const { page } = await site.visit(t)
    await page.clock.install()
    await open(page, inbox)
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await linesOf(page).nth(2).waitFor()
    const gone = page.waitForResponse((answer) => answer.request().method() === 'DELETE')
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Deleted.').waitFor()
    await page.clock.fastForward(6_000)
    assert.equal((await gone).status(), 204)
    assert.equal(await stored(), 2)
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Deleted.').waitFor()
    await page.goto('about:blank')
    await until('the request is deleted', async () => (await stored()) === 1)
  })

  test('deleting the last match of a filter says that nothing matches, and keeps the filter', async (t) => {
    const inbox = await withEvents(3)
    for (const viewport of [WIDE, PHONE]) {
      const { page } = await visitLive(site, t, inbox, { viewport })
      await page.getByLabel('Search').fill('event-2')
      await linesOf(page).nth(1).waitFor({ state: 'detached' })
      await page.getByRole('button', { name: /event-2 / }).click()
      await page.getByRole('button', { name: 'Delete', exact: true }).click()
      await page.getByText('No requests match.').waitFor()
      assert.equal(await page.getByText('Waiting for requests').count(), 0)
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await linesOf(page).nth(1).waitFor()
      assert.equal(await page.getByLabel('Search').inputValue(), '')
    }
  })

  test('the question before an inbox is destroyed counts all of its requests, whatever is filtered', async (t) => {
    const inbox = await withEvents(25)
    const { page } = await visitLive(site, t, inbox, { expected: /status of 404/ })
    await page.getByLabel('Search').fill('event-13')
    await linesOf(page).nth(1).waitFor({ state: 'detached' })
    await send(inbox, '/other')
    await send(inbox, '/event-130')
    await page.getByRole('button', { name: /event-130/ }).waitFor()
    assert.equal(await linesOf(page).count(), 2, 'what comes is filtered like what is there')
    await page.getByText('27 of 100', { exact: true }).waitFor()
    await pressInMenu(page, 'Destroy the inbox')
    await page.getByText('All that came (27 requests) is deleted for good.').waitFor()
    assert.deepEqual(await seriousFaults(page), [], 'the question')
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    await pressInMenu(page, 'Destroy the inbox')
    await page.getByRole('button', { name: 'Destroy it' }).click()
    await page.getByRole('heading', { name: 'Open an inbox' }).waitFor()
    await assert.rejects(site.server.mayfly.catch(inbox).status(), { phrase: 'not found' })
  })

  test('an inbox without requests left says so in place of its address, and counts what it refuses', async (t) => {
    const inbox = await withEvents(99)
    const { page } = await site.visit(t, { viewport: PHONE })
    await page.clock.install()
    await open(page, inbox)
    const copy = page.getByRole('button', { name: 'Copy the address of the inbox' })
    await copy.waitFor()
    await send(inbox, '/last')
    await page.getByText('No requests are left.').waitFor()
    assert.equal(await copy.count(), 0)
    for (const _ of [1, 2, 3]) await refusedBy(inbox)
    await page.clock.fastForward(20_000)
    // The service extends only what still works.
    await page.getByRole('link', { name: 'Buy another' }).waitFor()
    await page.getByText('More', { exact: true }).click()
    await page.getByRole('button', { name: 'Download all' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^Extend/ }).count(), 0)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: '3 refused', exact: true }).click()
    await page.getByText('3 requests were refused and not stored').waitFor()
    await page.getByText('3 × all requests of the plan were used').waitFor()
    assert.deepEqual(await seriousFaults(page), [])
  })

  test('an empty inbox that refuses everything says why, and offers no way to send', async (t) => {
    const inbox = await anInbox(site.server)
    await asOperator(site.server, suspendInbox(inbox.publicId, site.server.now()))
    await refusedBy(inbox)
    const { page } = await site.visit(t)
    // Its stream has ended, so it is not live.
    await openKey(page, inbox, site.server)
    await page.getByText('Suspended by the operator.').waitFor()
    await page.getByText('1 × the inbox was suspended').last().waitFor()
    assert.equal(await page.getByText('Waiting for requests').count(), 0)
    assert.equal(await page.getByText('Or send one from a terminal').isVisible(), false)
  })

  test('a test request is sent with a click, and shows like any other', async (t) => {
    const inbox = await anInbox(site.server)
    const { page } = await visitLive(site, t, inbox)
    await page.getByRole('button', { name: 'Send a test request' }).click()
    await title(page, '/test').waitFor()
    await page.getByText('"hello": "world"').waitFor()
  })

  test('requests that come while nobody looks are counted in the title, until somebody does', async (t) => {
    const inbox = await withEvents(1)
    const { page } = await visitLive(site, t, inbox)
    const name = await page.title()
    await page.getByRole('button', { name: /event-1 / }).click()
    await hide(page, true)
    await send(inbox, '/one')
    await send(inbox, '/two')
    await page.waitForFunction((wanted) => document.title === wanted, `(2) ${name}`)
    await hide(page, false)
    assert.equal(await page.title(), name)
  })

  test('times are relative and stay fresh, and leave alone what is selected', async (t) => {
    const inbox = await withEvents(1)
    const { page } = await site.visit(t, { expected: /ERR_FAILED/ })
    await page.clock.install()
    await open(page, inbox)
    // An answer of the service would set the clock of the page.
    await page.route('**/api/**', (route) => route.abort())
    const time = linesOf(page).first().locator('time')
    await page.clock.fastForward(90_000)
    await page.getByText('1 min ago').waitFor()
    await page.evaluate(() => {
      const line = document.querySelector('.events time')
      if (line) getSelection()?.selectAllChildren(line)
    })
    await page.clock.fastForward(120_000)
    assert.equal(await page.evaluate(() => String(getSelection())), '1 min ago')
    await page.evaluate(() => getSelection()?.removeAllRanges())
    await page.clock.fastForward(2_000)
    assert.match(await time.innerText(), /^[34] min ago$/)
  })

  const open = (page: Page, inbox: CatchCapability) => openLive(page, inbox, site.server)

  const send = (inbox: CatchCapability, path: string, body = '{}') =>
    sendTo(inbox, { path, body }, site.server)

  async function refusedBy({ publicId }: CatchCapability): Promise<void> {
    const answer = await fetch(`${site.server.url}/c/${publicId}`, { method: 'POST', body: 'x' })
    assert.equal(answer.status, 401)
  }

  async function withEvents(
    count: number,
    planId: 'spark' | 'standard' = 'spark',
  ): Promise<CatchCapability> {
    const inbox = await anInbox(site.server, planId)
    for (let number = 1; number <= count; number++) {
      // More than the burst of a plan are sent at the rate that it refills.
      await sendTo(inbox, { path: `/event-${number}`, body: `{"number":${number}}` }, site.server)
    }
    return inbox
  }
})

const title = (page: Page, path: string) =>
  page.getByRole('heading', { level: 2, name: `POST ${path}`, exact: true })

/** Makes the page believe that its tab is in the background, or in front again. */
function hide(page: Page, isHidden: boolean): Promise<void> {
  return page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden })
    document.dispatchEvent(new Event('visibilitychange'))
  }, isHidden)
}
