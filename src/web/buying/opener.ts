/** Opens a capability: from the purchase, this browser, a file or pasted text. */
import { type AnyCapability, parseCapability } from '../../client/capability-file.ts'
import { MayflyError } from '../../client/errors.ts'
import { button, confirmed, field, notice } from '../components.ts'
import { el, fill } from '../dom.ts'
import { moment, sentence } from '../format.ts'
import { downloadCapability } from './bought.ts'
import {
  closeHere,
  forget,
  keep,
  keptCapabilities,
  type OpenHere,
  openHere,
  whatIsOpen,
} from './capability.ts'
import { guardTab } from './pending.ts'

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
  signal: AbortSignal
}

/** Opens the tab's capability, after a purchase or a reload, or asks for one. */
export function startOpener<Product extends 'catch' | 'pulse'>({
  place,
  product,
  what,
  open,
}: OpenerOptions<Product>): Promise<void> {
  let opened = new AbortController()
  // Closing the tab would lose a capability that is not saved elsewhere.
  guardTab(() => whatIsOpen(product)?.isSaved === false)

  async function show(here: OpenHere & { capability: Of<Product> }): Promise<void> {
    opened.abort()
    opened = new AbortController()
    const { signal } = opened
    const { capability } = here
    openHere(here)
    const keeping = keepingOf(here, leaving)
    try {
      await open(capability, { keeping, onGone: close, signal })
    } catch (error) {
      if (signal.aborted) return
      const isOver = error instanceof MayflyError && (error.status === 401 || error.status === 404)
      if (isOver) close(sentence(error))
      else showAway(here, sentence(error))
    }
  }

  /** The service is unreachable. The capability may still exist, so it stays open. */
  function showAway(here: OpenHere & { capability: Of<Product> }, why: string): void {
    const again = button('Try again', () => show(here), { kind: 'primary' })
    fill(
      place,
      el(
        'div',
        { class: 'stack' },
        keepingOf(here, leaving),
        notice('bad', el('p', {}, why)),
        el('div', { class: 'row' }, again),
      ),
    )
  }

  const leaving: Leaving = {
    async onAnother() {
      const isLost = whatIsOpen(product)?.isSaved === false
      const question = {
        body: 'Its capability is in this tab alone, and nobody can recover it. Keep or download it first.',
        action: 'Lose it',
      }
      if (!isLost || (await confirmed(`Close ${what} that is saved nowhere?`, question))) close()
    },
    async onForget(publicId) {
      const isWanted = await confirmed('Forget it in this browser?', {
        body: 'Without its capability file nobody can open it again.',
        action: 'Forget it',
      })
      if (!isWanted) return
      forget(publicId)
      close()
    },
  }

  function close(problem?: string): void {
    closeHere(product)
    showOpener(problem)
  }

  function showOpener(problem?: string, pasted = ''): void {
    opened.abort()
    const kept = keptCapabilities().filter(isOurs)
    const openKept = (capability: Of<Product>) => show({ capability, isSaved: true })
    fill(
      place,
      el(
        'div',
        { class: 'stack narrow' },
        problem !== undefined && notice('bad', el('p', {}, problem)),
        kept.length > 0 && keptSection(kept, openKept),
        openSection(what, pasted, openText),
        el(
          'p',
          {},
          'None yet? ',
          el('a', { href: `/buy#${product}` }, `Buy ${what}`),
          '; it takes a minute.',
        ),
      ),
    )
  }

  function openText(text: string): void {
    const saved = parseCapability(text)
    if (saved && saved.baseUrl !== location.origin) {
      // Tokens must go only to their own service, and this page can only reach its own.
      showOpener(`This capability is of another service: ${saved.baseUrl}.`, text)
    } else if (saved && isOurs(saved.capability))
      void show({ capability: saved.capability, isSaved: true })
    else {
      showOpener(
        `This is not the capability of ${what}. Load or paste all of what its purchase ended with.`,
        text,
      )
    }
  }

  function isOurs(capability: AnyCapability): capability is Of<Product> {
    return capability.product === product
  }

  const here = whatIsOpen(product)
  if (here && isOurs(here.capability)) return show({ ...here, capability: here.capability })
  showOpener()
  return Promise.resolve()
}

/** The capabilities that are stored in this browser, each with a button. */
function keptSection<Kept extends AnyCapability>(
  kept: Kept[],
  open: (capability: Kept) => Promise<void>,
): HTMLElement {
  const lines = kept.map((capability) => keptLine(capability, () => open(capability)))
  return el('section', { class: 'card stack' }, el('h2', {}, 'Kept in this browser'), ...lines)
}

function keptLine(
  { publicId, expiresAt }: AnyCapability,
  onOpen: () => Promise<void>,
): HTMLElement {
  const name = `${publicId.slice(0, 12)}…`
  const open = button('Open', onOpen, { kind: 'small' })
  open.setAttribute('aria-label', `Open ${name}`)
  return el(
    'div',
    { class: 'row between unwrapped' },
    el(
      'div',
      {},
      el('code', {}, name),
      el('div', { class: 'small quiet' }, `ends ${moment(expiresAt)}`),
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
    field('Load its capability file', file),
    field('Or paste the capability', text),
    button('Open', () => openText(text.value), { kind: 'primary' }),
  )
}

/** The actions that close the open capability. */
type Leaving = {
  onAnother(): Promise<void>
  onForget(publicId: string): Promise<void>
}

/** Says where the capability is saved, and offers ways to save it. */
function keepingOf({ capability, isSaved }: OpenHere, leaving: Leaving): HTMLElement {
  const line = el('div', { class: 'row between keeping' })
  const { publicId } = capability
  const isKept = keptCapabilities().some((kept) => kept.publicId === publicId)
  const saved = (): void => {
    const here = { capability, isSaved: true }
    openHere(here)
    line.replaceWith(keepingOf(here, leaving))
  }
  const keepIt = (): void => {
    keep(capability)
    saved()
  }
  const downloadIt = (): void => {
    downloadCapability(capability)
    saved()
  }
  const where = isKept
    ? 'Kept in this browser.'
    : isSaved
      ? 'Open in this tab until it is closed.'
      : 'Only this tab has the capability: closing it loses it.'
  fill(
    line,
    el('p', { class: 'small quiet' }, where),
    el(
      'div',
      { class: 'row' },
      isKept
        ? button('Forget it here', () => leaving.onForget(publicId), { kind: 'small' })
        : button('Keep it in this browser', keepIt, { kind: 'small' }),
      button('Download', downloadIt, { kind: 'small' }),
      button('Open another', leaving.onAnother, { kind: 'small' }),
    ),
  )
  return line
}
