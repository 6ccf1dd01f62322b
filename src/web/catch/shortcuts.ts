/** The keyboard of the inbox. No key is taken from a field, a dialog, or a combination of the browser's. */
import { button, showDialog } from '../components.ts'
import { el } from '../dom.ts'

export type Shortcuts = {
  next(): void
  previous(): void
  search(): void
  copy(): void
  undo(): void
  /** Leaves what is open. */
  leave(): void
  /** Whether arrows move in the list now. Elsewhere they scroll. */
  isInList(): boolean
}

const KEYS: [keys: string, what: string][] = [
  ['j  ↓', 'Next request'],
  ['k  ↑', 'Previous request'],
  ['Enter', 'Open the request, and go to it'],
  ['Esc', 'Back to the list'],
  ['/', 'Search'],
  ['c', 'Copy the body of the request'],
  ['z', 'Undo a deletion'],
  ['?', 'Show these shortcuts'],
]

export function listenToKeys(
  signal: AbortSignal,
  { next, previous, search, copy, undo, leave, isInList }: Shortcuts,
): void {
  const doings: Record<string, () => void> = {
    j: next,
    k: previous,
    '/': search,
    c: copy,
    z: undo,
    '?': showShortcuts,
    Escape: leave,
  }

  function pressed(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (document.querySelector('dialog[open]') || isField(event.target)) return
    const arrows: Record<string, () => void> = { ArrowDown: next, ArrowUp: previous }
    const doing = doings[event.key] ?? (isInList() ? arrows[event.key] : undefined)
    if (!doing) return
    event.preventDefault()
    doing()
  }

  document.addEventListener('keydown', pressed, { signal })
}

export function showShortcuts(): void {
  const close = showDialog('Keyboard shortcuts', [
    el(
      'table',
      {},
      el(
        'tbody',
        {},
        ...KEYS.map(([keys, what]) =>
          el(
            'tr',
            {},
            el(
              'th',
              { scope: 'row' },
              ...keys.split('  ').flatMap((key) => [el('kbd', {}, key), ' ']),
            ),
            el('td', {}, what),
          ),
        ),
      ),
    ),
    el(
      'div',
      { class: 'row' },
      button('Close', () => close()),
    ),
  ])
}

function isField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select') !== null
}
