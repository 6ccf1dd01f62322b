/** The page of an inbox: buys one, opens it, and sends to it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Locator, Page } from 'playwright-core'
import { type CatchCapability, formatCapability } from '../../src/client/index.ts'
import type { TestServer } from './server.ts'

export type Sent = { path: string; body: BodyInit; type?: string; headers?: Record<string, string> }

export function buyInbox(
  server: TestServer,
  planId: 'spark' | 'standard' = 'spark',
): Promise<CatchCapability> {
  return server.mayfly.buyCatch({
    planId,
    idempotencyKey: randomUUID(),
    onInvoice: ({ bolt11 }) => server.pay(bolt11),
  })
}

/** Opens an inbox by its capability, and waits until it is live. */
export async function openInbox(
  page: Page,
  inbox: CatchCapability,
  server: { url: string },
): Promise<void> {
  await pasteCapability(page, formatCapability({ capability: inbox, baseUrl: server.url }), server)
  await page.getByText('Live', { exact: true }).waitFor()
}

export async function pasteCapability(
  page: Page,
  text: string,
  { url }: { url: string },
): Promise<void> {
  await page.goto(`${url}/catch`)
  await page.getByLabel('Or paste the key').fill(text)
  await page.getByRole('button', { name: 'Open', exact: true }).click()
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
