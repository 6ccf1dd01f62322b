/** The line above the requests of an inbox: its address, its state, what is used, and a menu of the rest. */
import type { CatchRefusals, CatchStatus } from '../../client/index.ts'
import { button, copyButton } from '../components.ts'
import { el, fill } from '../dom.ts'
import { bytes, count, duration, moment } from '../format.ts'
import { clock } from '../service.ts'
import { refusalsView } from './refusals-view.ts'

const DAY_MS = 24 * 60 * 60 * 1000

export type InboxBar = {
  element: HTMLElement
  show(status: CatchStatus, refusals: CatchRefusals): void
  /** Shows anew how much time is left. To be called every second. */
  tick(): void
  /** Closes the menu. False if it was closed. */
  closeMenu(): boolean
}

export function createInboxBar(
  ingestUrl: string,
  {
    state,
    extras,
    onDestroy,
    onExtend,
    signal,
  }: {
    /** Whether new requests arrive here at once. */
    state: HTMLElement
    /** More buttons of the menu. */
    extras: HTMLElement[]
    onDestroy: () => unknown
    onExtend: () => unknown
    signal: AbortSignal
  },
): InboxBar {
  let expiresAt = ''
  let isActive = false
  /** Near the end, extending stands in the line itself, and not in the menu alone. */
  let warnFrom = 0
  let endedNow: string | null | undefined
  const address = el('div', { class: 'inbox-address' })
  const used = el('p', { class: 'inbox-used small number' })
  const left = el('span', {})
  const soon = button('Extend', onExtend, { kind: 'small' })
  soon.hidden = true
  const facts = el('div', { class: 'stack' })
  const summary = el('summary', { class: 'button small' }, 'More')
  const menu = el(
    'details',
    { class: 'inbox-menu' },
    summary,
    el(
      'div',
      { class: 'card stack' },
      facts,
      el('div', { class: 'row' }, ...extras),
      el(
        'div',
        { class: 'row' },
        button('Extend the inbox', onExtend, { kind: 'small' }),
        button('Destroy the inbox', onDestroy, { kind: 'small danger' }),
      ),
    ),
  )
  const element = el('div', { class: 'inbox-bar' }, address, used, state, menu)
  document.addEventListener('pointerdown', closeIfOutside, { signal })
  menu.addEventListener('click', (event) => {
    if ((event.target as Element).closest('.row > .button')) menu.open = false
  })

  function closeIfOutside({ target }: Event): void {
    if (target instanceof Node && !menu.contains(target)) menu.open = false
  }

  function show(status: CatchStatus, refusals: CatchRefusals): void {
    expiresAt = status.expiresAt
    isActive = status.status === 'active'
    warnFrom = (Date.parse(expiresAt) - Date.parse(status.createdAt)) / 10
    const { acceptedRequestCount, requestLimit, storedBytes, storageLimitBytes } = status
    const ended = endedText(status)
    // Only when it changes: whoever selects the address keeps it.
    if (endedNow !== ended) {
      endedNow = ended
      fill(address, ...(ended === null ? addressParts() : [el('p', { role: 'status' }, ended)]))
    }
    fill(
      used,
      el('span', {}, `${count(acceptedRequestCount)} of ${count(requestLimit)}`),
      ' requests · ',
      el('span', {}, `${bytes(storedBytes)} of ${bytes(storageLimitBytes)}`),
      ' · ',
      left,
      ' ',
      soon,
      refusals.total > 0 && refusedText(refusals.total),
    )
    fill(
      facts,
      refusalsView(refusals, status),
      el(
        'p',
        { class: 'small quiet' },
        `Ends ${moment(expiresAt)}. Each request may have up to ${bytes(status.maxBytesPerRequest)}. Deleting a request frees its storage, but it still counts as a request.`,
      ),
    )
    tick()
  }

  /** The keyboard gets to what it opens by the menu's own button, and needs no stop here. */
  function refusedText(total: number): HTMLElement {
    const open = (): void => {
      menu.open = true
    }
    return el('strong', { class: 'inbox-refused', onclick: open }, ` · ${count(total)} refused`)
  }

  function addressParts(): HTMLElement[] {
    const copy = copyButton(() => ingestUrl, { kind: 'small' })
    copy.setAttribute('aria-label', 'Copy the address of the inbox')
    return [el('code', { title: ingestUrl }, ingestUrl), copy]
  }

  function tick(): void {
    const time = Date.parse(expiresAt) - clock.now()
    soon.hidden = !isActive || time <= 0 || time > Math.min(warnFrom, DAY_MS)
    const text = time > 0 ? `ends in ${duration(time)}` : 'expired'
    // Not while it is the same: whoever selects it keeps it.
    if (left.textContent !== text) left.textContent = text
  }

  return {
    element,
    show,
    tick,
    closeMenu() {
      if (!menu.open) return false
      menu.open = false
      summary.focus()
      return true
    },
  }
}

/** Why an inbox accepts nothing. Null if it does. */
function endedText({
  status,
  requestLimit,
  storedBytes,
  storageLimitBytes,
}: CatchStatus): string | null {
  switch (status) {
    case 'active':
      return storedBytes >= storageLimitBytes
        ? 'The storage is full. Delete requests to make room.'
        : null
    case 'exhausted':
      return `All ${count(requestLimit)} requests are used. New ones are refused.`
    case 'suspended':
      return 'Suspended by the operator. New requests are refused.'
    case 'expired':
      return 'This inbox has expired. Its requests are deleted.'
    case 'manually_destroyed':
      return 'This inbox was destroyed.'
  }
}
