/** Opens a capability: from the purchase, this browser, a file or pasted text. */
import { type AnyCapability, parseCapability } from '../../client/capability-file.ts'
import { MayflyError } from '../../client/errors.ts'
import { button, field, notice } from '../components.ts'
import { el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { moment, sentence } from '../format.ts'
import { clock } from '../service.ts'
import { closeHere, type Held, type OpenHere, openHere, whatIsOpen } from './capability.ts'
import { guardTab } from './guard.ts'
import { type Kept, keep, keptCapabilities, nameOfKept } from './keeping.ts'
import { keepingOf } from './keeping-line.ts'
import { planTitle } from './terms.ts'

type Of<Product> = AnyCapability & { product: Product }

export type OpenerOptions<Product> = {
  place: HTMLElement
  product: Product
  /** What the capability opens, with an article: `an inbox`. */
  what: string
  /** Shows the capability until the signal aborts. */
  open(capability: Of<Product>, options: Opened): Promise<void>
}

export type Opened = {
  /** Says where the capability is saved. Shown above it. */
  keeping: HTMLElement
  /** Called after the capability was destroyed. */
  onGone: () => void
  /** Called when a token of the capability was replaced: saves it where it is saved here, and shows it anew. */
  onReplaced: (capability: AnyCapability) => void
  signal: AbortSignal
}

/** Opens the tab's capability, after a purchase or a reload, or asks for one. */
export function startOpener<Product extends AnyCapability['product']>({
  place,
  product,
  what,
  open,
}: OpenerOptions<Product>): Promise<void> {
  let opened = new AbortController()
  // Closing the tab would lose a capability that is not saved elsewhere.
  guardTab(() => whatIsOpen(product)?.isSaved === false)

  const here = whatIsOpen(product)
  if (here && isOurs(here.capability)) return show({ ...here, capability: here.capability })
  ask()
  return Promise.resolve()

  async function show(here: OpenHere & { capability: Of<Product> }): Promise<void> {
    opened.abort()
    opened = new AbortController()
    const { signal } = opened
    openHere(here)
    const keeping = (): HTMLElement => keepingOf(here, { what, close })
    const onReplaced = (capability: AnyCapability): void => {
      if (!isOurs(capability)) return
      void show({ ...here, capability, isSaved: isKeptAnew({ ...here, capability }) })
    }
    try {
      await open(here.capability, { keeping: keeping(), onGone: close, onReplaced, signal })
    } catch (error) {
      if (signal.aborted) return
      const isOver = error instanceof MayflyError && (error.status === 401 || error.status === 404)
      if (isOver) return close(sentence(error))
      // The service is unreachable. The capability may still exist, so it stays open.
      fill(place, awayView(keeping(), { why: sentence(error), onAgain: () => show(here) }))
    }
  }

  function close(problem?: string): void {
    closeHere(product)
    ask({ problem })
  }

  /** Asks for a capability, and says why the one before is not open. */
  function ask({ problem, pasted = '' }: { problem?: string | undefined; pasted?: string } = {}) {
    opened.abort()
    const kept = keptCapabilities().flatMap((each) =>
      isOurs(each.capability) ? [{ ...each, capability: each.capability }] : [],
    )
    const openKept = (each: Omit<OpenHere, 'isSaved'> & { capability: Of<Product> }) =>
      show({ ...each, isSaved: true })
    fill(
      place,
      el(
        'div',
        { class: 'stack narrow' },
        problem !== undefined && notice('bad', el('p', {}, problem)),
        kept.length > 0 && keptSection(kept, openKept),
        openSection(what, pasted, openText),
        buyLine(product, what),
      ),
    )
  }

  function openText(text: string): void {
    const saved = parseCapability(text)
    if (saved && saved.baseUrl !== location.origin) {
      // Tokens must go only to their own service, and this page can only reach its own.
      const problem = `This capability is of another service: ${saved.baseUrl}.`
      ask({ problem, pasted: text })
    } else if (saved && isOurs(saved.capability)) {
      void show({ ...saved, capability: withoutCode(saved.capability), isSaved: true })
    } else {
      const problem = `This is not the capability of ${what}. Load the capability file, or paste all of it.`
      ask({ problem, pasted: text })
    }
  }

  function isOurs(capability: AnyCapability): capability is Of<Product> {
    if (capability.product === 'whisper' && capability.receiptToken === undefined) return false
    return capability.product === product
  }
}

/** Replaces what is kept in this browser. Returns false if nothing is, or it could not be replaced. */
function isKeptAnew(held: Held): boolean {
  try {
    if (nameOfKept(held.capability.publicId) === null) return false
    keep(held)
    return true
  } catch {
    return false
  }
}

function awayView(
  keeping: HTMLElement,
  { why, onAgain }: { why: string; onAgain: () => Promise<void> },
): HTMLElement {
  return el(
    'div',
    { class: 'stack' },
    keeping,
    notice('bad', el('p', {}, why)),
    el('div', { class: 'row' }, button('Try again', onAgain, { kind: 'primary' })),
  )
}

/** The page of a receipt reads no whisper, so it does not store the code that a file has besides. */
function withoutCode<Capability extends AnyCapability>(capability: Capability): Capability {
  const { code, ...rest } = capability as AnyCapability & { code?: string }
  return rest as Capability
}

function buyLine(product: AnyCapability['product'], what: string): HTMLElement {
  if (product === 'whisper') {
    const link = el('a', { href: '/whisper' }, 'Write a whisper')
    return el('p', {}, 'None yet? ', link, ', and ask to be told when it is read.')
  }
  const link = el('a', { href: `/buy#${product}` }, `Buy ${what}`)
  return el('p', {}, 'None yet? ', link, '; it takes a minute.')
}

/** The capabilities that are kept in this browser, each with a button. */
function keptSection<Thing extends Kept>(
  kept: Thing[],
  open: (thing: Thing) => Promise<void>,
): HTMLElement {
  const lines = kept.map((thing) => keptLine(thing, () => open(thing)))
  return el('section', { class: 'card stack' }, el('h2', {}, 'Kept in this browser'), ...lines)
}

function keptLine(
  { name, planId, capability: { expiresAt } }: Kept,
  onOpen: () => Promise<void>,
): HTMLElement {
  const shown = plainly(name)
  const open = button('Open', onOpen, { kind: 'small' })
  open.setAttribute('aria-label', `Open ${shown}`)
  const plan = planTitle(planId)
  const isOver = Date.parse(expiresAt) <= clock.now()
  return el(
    'div',
    { class: 'row between unwrapped' },
    el(
      'div',
      {},
      el('strong', { dir: 'auto' }, shown),
      el(
        'div',
        { class: 'small quiet' },
        `${plan === '' ? '' : `${plan} · `}${isOver ? 'ended' : 'ends'} ${moment(expiresAt)}`,
      ),
    ),
    open,
  )
}

/** Reads a capability from a file or from pasted text. */
function openSection(what: string, pasted: string, openText: (text: string) => void): HTMLElement {
  const text = el('textarea', { rows: '5', spellcheck: 'false', autocomplete: 'off' })
  text.value = pasted
  const file = el('input', { type: 'file', accept: 'application/json,.json' })
  file.addEventListener('change', async () => {
    openText((await file.files?.[0]?.slice(0, 65_536).text()) ?? '')
  })
  return el(
    'section',
    { class: 'card stack' },
    el('h2', {}, `Open ${what}`),
    el(
      'p',
      { class: 'small quiet' },
      'The capability is the access key that you saved when you bought it.',
    ),
    field('Load its capability file', file),
    field('Or paste the capability', text),
    button('Open', () => openText(text.value), { kind: 'primary' }),
  )
}
