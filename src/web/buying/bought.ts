/** Shows a capability to its buyer after the purchase, with the ways to save it. It is shown once. */
import type { CatchCapability, PulseCapability } from '../../client/index.ts'
import { button, confirmed, copyButton } from '../components.ts'
import { type Child, el } from '../dom.ts'
import { moment } from '../format.ts'
import {
  capabilityText,
  downloadCapability,
  type Held,
  openHere,
  whatIsOpen,
} from './capability.ts'
import type { Saving } from './checkout.ts'
import { keep } from './keeping.ts'
import { NOUNS, type Terms, termsLine } from './terms.ts'

type Bought = CatchCapability | PulseCapability

const PAGES = { catch: '/catch', pulse: '/pulse' } as const

export function boughtView(
  capability: Bought,
  { terms }: { terms: Terms },
  { onSaved, say, isSaved, state }: Saving,
): Child[] {
  const { product, publicId, expiresAt } = capability
  const { noun, article } = NOUNS[product]
  const held: Held = { capability, planId: terms.planId }

  async function open(): Promise<void> {
    const there = whatIsOpen(product)
    const isLost = there?.isSaved === false && there.capability.publicId !== publicId
    const question = {
      body: `This tab has ${article} open that is not saved, and opening this one closes it for good. Open that page and save it first.`,
      action: 'Lose it',
    }
    if (isLost && !(await confirmed(`Close ${article} that is not saved?`, question))) return
    openHere({ ...held, isSaved: isSaved() })
    onSaved('Open in this tab.')
    location.assign(PAGES[product])
  }

  /** Keeps the capability. Returns false if the browser refuses to store it. */
  function keepHere(): boolean {
    try {
      keep(held)
    } catch {
      say('This browser could not keep it: its storage is full or switched off. Download it.')
      return false
    }
    onSaved('Kept in this browser.')
    return true
  }

  return [
    el('h2', { tabindex: '-1', id: 'step' }, `Your ${noun} is ready`),
    el(
      'p',
      {},
      `${termsLine(terms)}. Ends `,
      el('time', { datetime: expiresAt }, moment(expiresAt)),
      '.',
    ),
    el(
      'p',
      {},
      `Its access key, which we call a capability, is the only way in: anyone who has it can use this ${noun}. Save it now. We cannot recover it.`,
    ),
    state,
    button(`Keep and open the ${noun}`, () => keepHere() && open(), { kind: 'primary wide' }),
    el(
      'div',
      { class: 'row even' },
      button('Download', () => {
        downloadCapability(held)
        onSaved('Downloaded.')
      }),
      copyButton(() => capabilityText(held), {
        onCopied: () => {
          if (!isSaved())
            say('Copied, not saved yet. Paste it somewhere safe, or keep or download it.')
        },
      }),
      button('Open without keeping', open),
    ),
    el(
      'p',
      { class: 'small quiet' },
      `Keeping stores it in this browser, where anyone who uses the browser can open it.`,
    ),
    el(
      'pre',
      { class: 'content token', tabindex: '0', role: 'group', 'aria-label': 'The capability' },
      el('code', {}, capabilityText(held).trim()),
    ),
  ]
}
