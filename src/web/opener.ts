/** Opening what was bought: from the purchase, this browser, a file or a paste. */
import { type AnyCapability, parseCapability } from '../client/capability-file.ts'
import { downloadCapability } from './bought.ts'
import { forget, keep, keptCapabilities, takeHandedOn } from './capability.ts'
import { button, field, notice } from './components.ts'
import { el, fill } from './dom.ts'
import { moment, sentence } from './format.ts'

type Of<Product> = AnyCapability & { product: Product }

export type OpenerOptions<Product> = {
  place: HTMLElement
  product: Product
  /** The word for one, with its article, such as `an inbox`. */
  what: string
  /** Shows it, until the signal says that another is to be shown. */
  open(capability: Of<Product>, options: Opened): Promise<void>
}

export type Opened = {
  /** How it is kept, to stand above it. */
  keeping: HTMLElement
  /** Called when it is destroyed, and the page has nothing to show any more. */
  onGone: () => void
  signal: AbortSignal
}

/** Opens what the page before has handed on, or asks for one. */
export function startOpener<Product extends 'catch' | 'pulse'>({
  place,
  product,
  what,
  open,
}: OpenerOptions<Product>): Promise<void> {
  let opened = new AbortController()

  async function show(capability: Of<Product>): Promise<void> {
    opened.abort()
    opened = new AbortController()
    const { signal } = opened
    const keeping = keepingOf(capability, () => showOpener())
    try {
      await open(capability, { keeping, onGone: () => showOpener(), signal })
    } catch (error) {
      if (!signal.aborted) showOpener(sentence(error))
    }
  }

  function showOpener(problem?: string): void {
    opened.abort()
    const kept = keptCapabilities().filter(isOurs)
    const text = el('textarea', { rows: '5', spellcheck: 'false', autocomplete: 'off' })
    const file = el('input', { type: 'file', accept: 'application/json,.json' })
    file.addEventListener('change', async () => {
      openText((await file.files?.[0]?.slice(0, 65_536).text()) ?? '')
    })
    fill(
      place,
      el(
        'div',
        { class: 'stack narrow' },
        problem !== undefined && notice('bad', el('p', {}, problem)),
        kept.length > 0 &&
          el(
            'section',
            { class: 'card stack' },
            el('h2', {}, 'Kept in this browser'),
            ...kept.map(keptLine),
          ),
        el(
          'section',
          { class: 'card stack' },
          el('h2', {}, `Open ${what}`),
          field('Load its capability file', file),
          field('Or paste the capability', text),
          button('Open', () => openText(text.value), { kind: 'primary' }),
        ),
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

  function keptLine(capability: Of<Product>): HTMLElement {
    return el(
      'div',
      { class: 'row between' },
      el(
        'div',
        {},
        el('code', {}, `${capability.publicId.slice(0, 12)}…`),
        el('div', { class: 'small quiet' }, `ends ${moment(capability.expiresAt)}`),
      ),
      button('Open', () => show(capability), { kind: 'small' }),
    )
  }

  function openText(text: string): void {
    const saved = parseCapability(text)
    if (saved && saved.baseUrl !== location.origin) {
      // Tokens go to the service that they are of, and this page may only speak to its own.
      showOpener(`This capability is of another service: ${saved.baseUrl}.`)
    } else if (saved && isOurs(saved.capability)) void show(saved.capability)
    else {
      showOpener(
        `This is not the capability of ${what}. Load or paste all of what its purchase ended with.`,
      )
    }
  }

  function isOurs(capability: AnyCapability): capability is Of<Product> {
    return capability.product === product
  }

  const handedOn = takeHandedOn()
  if (handedOn && isOurs(handedOn)) return show(handedOn)
  showOpener()
  return Promise.resolve()
}

/** Says whether a reload would lose it, and offers what helps. */
function keepingOf(capability: AnyCapability, onAnother: () => void): HTMLElement {
  const line = el('div', { class: 'row between keeping' })
  const isKept = keptCapabilities().some(({ publicId }) => publicId === capability.publicId)
  const change = (): void => {
    if (isKept) forget(capability.publicId)
    else keep(capability)
    line.replaceWith(keepingOf(capability, onAnother))
  }
  fill(
    line,
    el(
      'p',
      { class: 'small quiet' },
      isKept
        ? 'Kept in this browser.'
        : 'Only this page knows the capability: a reload forgets it.',
    ),
    el(
      'div',
      { class: 'row' },
      button(isKept ? 'Forget it here' : 'Keep it in this browser', change, { kind: 'small' }),
      button('Download', () => downloadCapability(capability), { kind: 'small' }),
      button('Open another', onAnother, { kind: 'small' }),
    ),
  )
  return line
}
