/** Shows a capability to its buyer after the purchase, with the ways to save it. It is shown once. */
import type { CatchCapability, PulseCapability } from '../../client/index.ts'
import { button, copyButton, download } from '../components.ts'
import { type Child, el } from '../dom.ts'
import { moment } from '../format.ts'
import { capabilityFileName, capabilityText, type Held, openHere } from './capability.ts'
import type { Saving } from './checkout.ts'
import { keep } from './keeping.ts'

type Bought = CatchCapability | PulseCapability

const WORDS = {
  catch: { title: 'Your inbox is ready', open: 'Open the inbox', page: '/catch' },
  pulse: { title: 'Your monitor is ready', open: 'Open the monitor', page: '/pulse' },
} as const

export function boughtView(capability: Bought, { onSaved, state }: Saving): Child[] {
  const held: Held = { capability }
  const { title, open, page } = WORDS[capability.product]
  let isSaved = false
  const saved = (how: string): void => {
    isSaved = true
    onSaved(how)
  }
  return [
    el('h2', { tabindex: '-1', id: 'step' }, title),
    el(
      'p',
      {},
      'Whoever has this capability can use it. It is shown this once, and nobody can recover it: ',
      'save it now. It ends ',
      el('time', { datetime: capability.expiresAt }, moment(capability.expiresAt)),
      '.',
    ),
    el(
      'pre',
      { class: 'content token', tabindex: '0', role: 'group', 'aria-label': 'The capability' },
      el('code', {}, capabilityText(held).trim()),
    ),
    el(
      'div',
      { class: 'row even' },
      copyButton(() => capabilityText(held), {
        label: 'Copy all of it',
        onCopied: () => saved('Copied. Paste it somewhere safe.'),
      }),
      button('Download', () => {
        downloadCapability(held)
        saved('Downloaded.')
      }),
      button('Keep in this browser', () => {
        keep(held)
        saved('Kept in this browser: anyone who uses it can open this.')
      }),
    ),
    state,
    button(
      open,
      () => {
        openHere({ ...held, isSaved })
        onSaved('Open in this tab.')
        location.assign(page)
      },
      { kind: 'primary wide' },
    ),
  ]
}

/** Downloads the capability file. */
export function downloadCapability(held: Held): void {
  download(capabilityFileName(held.capability), capabilityText(held), 'application/json')
}
