/** Shares a monitor: its public status page and its badge. */
import type { PulseSettings, PulseStatus } from '../../client/index.ts'
import { button, codeBox } from '../components.ts'
import { el, fill } from '../dom.ts'
import { attempt } from '../live.ts'

export type SharingView = { element: HTMLElement; show(status: PulseStatus): void }

/** @param save sends the changed settings. */
export function createSharingView(save: (settings: PulseSettings) => Promise<void>): SharingView {
  const element = el('section', { class: 'card stack' })
  let shown = ''

  function show({ publicStatusEnabled: isShared, publicStatusId }: PulseStatus): void {
    // Drawing the button again would take the keyboard focus from it.
    const next = isShared ? publicStatusId : 'not shared'
    if (shown === next) return
    shown = next
    const toggle = button(isShared ? 'Stop sharing' : 'Share the status', () =>
      attempt(() => save({ publicStatusEnabled: !isShared })),
    )
    fill(
      element,
      el('h2', {}, 'Sharing'),
      ...(isShared ? addresses(publicStatusId) : [el('p', {}, NOT_SHARED)]),
      toggle,
    )
  }

  return { element, show }
}

const NOT_SHARED =
  'Only you can see this monitor. Share it to get a public page and a badge that show its state.'

function addresses(publicStatusId: string): HTMLElement[] {
  const statusUrl = `${location.origin}/status/${publicStatusId}`
  const badgeUrl = `${location.origin}/api/pulse/public/${publicStatusId}/badge.svg`
  return [
    el(
      'p',
      {},
      'Anyone with this address sees the name, the description, the state and the time of the last ping, and nothing else. If you stop sharing, the address stops working for good; sharing again makes a new one.',
    ),
    codeBox(statusUrl, { label: 'the address of the status', isWrapped: true }),
    el('p', {}, el('a', { href: statusUrl }, 'Open the status page')),
    codeBox(`[![state](${badgeUrl})](${statusUrl})`, {
      label: 'the badge in Markdown',
      isWrapped: true,
    }),
  ]
}
