/** The pages as a person uses them: opens a key, sends to an inbox, presses in menus, and reads what is shown. */
import assert from 'node:assert/strict'
import type { Download, Locator, Page } from 'playwright-core'
import {
  type AnyCapability,
  type CatchCapability,
  formatCapability,
  type SharedWhisper,
  type WhisperTerms,
} from '../../src/client/index.ts'
import type { startSite, VisitOptions } from './browser.ts'
import type { After } from './folder.ts'
import type { TestServer } from './server.ts'

export type Sent = { path: string; body: BodyInit; type?: string; headers?: Record<string, string> }

/** Buys a secret. */
export const aSecret = ({ mayfly, pay }: TestServer, terms: WhisperTerms): Promise<SharedWhisper> =>
  mayfly.buyWhisper({ planId: 'spark', onInvoice: ({ bolt11 }) => pay(bolt11), ...terms })

/** Opens the key of what was bought on the page of its product. */
export async function openKey(
  page: Page,
  capability: AnyCapability,
  { url }: { url: string },
): Promise<void> {
  const { product } = capability
  await page.goto(`${url}/${product === 'whisper' ? 'receipt' : product}`)
  await page
    .getByLabel('Or paste the key')
    .fill(formatCapability({ capability, baseUrl: url, planId: 'spark' }))
  await page.getByRole('button', { name: 'Open', exact: true }).click()
}

/** Opens an inbox or a monitor, and waits until it is live. */
export async function openLive(
  page: Page,
  capability: AnyCapability,
  server: { url: string },
): Promise<void> {
  await openKey(page, capability, server)
  await page.getByText('Live', { exact: true }).waitFor()
}

/** A new user who opens an inbox or a monitor of the site, or of another server. */
export async function visitLive(
  site: ReturnType<typeof startSite>,
  t: After,
  ...[capability, { server = site.server, ...options } = {}]: [
    capability: AnyCapability,
    options?: VisitOptions & { server?: TestServer },
  ]
): ReturnType<typeof site.visit> {
  const opened = await site.visit(t, options)
  await openLive(opened.page, capability, server)
  return opened
}

/** Sends a request that is stored. */
export async function sendTo(
  { publicId }: CatchCapability,
  { path, body, type = 'application/json', headers = {} }: Sent,
  { url }: { url: string },
): Promise<void> {
  const answer = await fetch(`${url}/c/${publicId}${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': type },
    body,
  })
  assert.equal(answer.status, 204)
}

export const linesOf = (page: Page): Locator =>
  page.getByRole('list', { name: /Requests/ }).getByRole('listitem')

/** Presses a button of the menu of an inbox. */
export async function pressInMenu(page: Page, name: string): Promise<void> {
  await page.getByText('More', { exact: true }).click()
  await page.getByRole('button', { name, exact: true }).click()
}

/** The text of what has the keyboard. */
export function focused(page: Page): Promise<string> {
  return page.evaluate(() => (document.activeElement as HTMLElement).innerText)
}

/** Writes the draft of a secret. */
export async function write(page: Page, text: string, { url }: { url: string }): Promise<void> {
  await page.goto(`${url}/whisper`)
  await page.getByLabel('Text', { exact: true }).fill(text)
}

/** Buys an inbox, and leaves its key on the screen. */
export async function buyInbox(page: Page, { url }: { url: string }): Promise<void> {
  await page.goto(`${url}/buy#catch/spark`)
  await page.getByRole('button', { name: 'Pay (simulator)' }).click()
  await page.getByRole('heading', { name: 'Your inbox is ready' }).waitFor()
}

/** Presses a button that downloads a file. */
export async function download(page: Page, name: string): Promise<Download> {
  const button = page.getByRole('button', { name, exact: true }).first()
  const [file] = await Promise.all([page.waitForEvent('download'), button.click()])
  return file
}

/** After a purchase: opens what was bought in this tab alone. */
export async function openWithoutSaving(page: Page): Promise<void> {
  await page.getByText('Other ways', { exact: true }).click()
  await page.getByRole('button', { name: 'Open without saving' }).click()
}

/** After a purchase: the key as it is shown. */
export async function shownKey(page: Page): Promise<string> {
  await page.getByText('Other ways', { exact: true }).click()
  return page.getByRole('group', { name: 'The key' }).innerText()
}

/** Presses a button of the menu of the key of what is open. */
export async function pressInKeyMenu(page: Page, name: string): Promise<void> {
  await page.getByText('Key', { exact: true }).click()
  await page.getByRole('button', { name, exact: true }).click()
}

/** The invoice that is shown. */
export async function invoiceOf(page: Page): Promise<string> {
  const link = page.getByRole('link', { name: 'Open in a wallet' })
  return ((await link.getAttribute('href')) ?? '').replace('lightning:', '')
}

/** After a purchase: the share code alone, below the message. */
export async function codeOf(page: Page): Promise<string> {
  await page.getByText('Other ways to pass on the code').click()
  return page.getByRole('group', { name: 'The share code' }).innerText()
}

/** The names of what the page has stored in this browser. */
export function stored(page: Page): Promise<string[]> {
  return page.evaluate(() => [...Object.keys(localStorage), ...Object.keys(sessionStorage)])
}

/** All that the page has stored in this browser, names and values, in one text. */
export function everythingStored(page: Page): Promise<string> {
  return page.evaluate(() =>
    [localStorage, sessionStorage].flatMap((storage) => Object.entries({ ...storage })).join('\n'),
  )
}
