/** The components of the pages. style.css has a class of the same name for each. */
import { byId, type Child, el, fill } from './dom.ts'

/** Long enough to read a short sentence twice. */
const TOAST_MS = 4_000
const COPIED_MS = 1_600

export function button(
  label: string,
  onClick: () => unknown,
  { kind = '' }: { kind?: string } = {},
): HTMLButtonElement {
  return el('button', { type: 'button', class: `button ${kind}`, onclick: onClick }, label)
}

/**
 * A button that copies the result of `text` and confirms that. If the browser refuses, it shows the
 * text to copy by hand.
 */
export function copyButton(
  text: () => string,
  { label = 'Copy', kind = '', onCopied }: CopyOptions = {},
): HTMLButtonElement {
  // Both texts always take their place, so that the button keeps its width.
  const copy = el(
    'button',
    { type: 'button', class: `button copy ${kind}`, onclick: copyIt },
    el('span', {}, label),
    el('span', { class: 'done' }, 'Copied'),
  )
  let timer: ReturnType<typeof setTimeout> | undefined

  async function copyIt(): Promise<void> {
    const copied = text()
    if (!(await toClipboard(copied))) {
      showToCopy(copied, onCopied)
      return
    }
    copy.dataset.copied = ''
    announce('Copied')
    onCopied?.()
    clearTimeout(timer)
    timer = setTimeout(() => {
      delete copy.dataset.copied
    }, COPIED_MS)
  }

  return copy
}

export type CopyOptions = { label?: string; kind?: string; onCopied?: () => void }

/** Code or an address with a button that copies it. `label` says what it is; `shown` is less of a long one. */
export function codeBox(
  text: string,
  { label, isWrapped = false, shown = text }: CodeBoxOptions,
): HTMLElement {
  const copy = copyButton(() => text)
  copy.setAttribute('aria-label', `Copy ${label}`)
  return el(
    'div',
    { class: isWrapped ? 'code wrap' : 'code' },
    // With a tabindex, the keyboard can scroll wide code too.
    el('pre', { tabindex: '0', role: 'group', 'aria-label': label }, el('code', {}, shown)),
    copy,
  )
}

export type CodeBoxOptions = { label: string; isWrapped?: boolean; shown?: string }

/** A label above an input. */
export function field(
  label: string,
  input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement,
): HTMLElement {
  input.id ||= `field-${label.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`
  return el('div', { class: 'field' }, el('label', { for: input.id }, label), input)
}

/** A notice of a sentence or two. `kind` is '', `warn` or `bad`. */
export function notice(kind: '' | 'warn' | 'bad', ...children: Child[]): HTMLElement {
  return el('div', { class: `notice ${kind}`, role: kind === 'bad' ? 'alert' : false }, ...children)
}

/** Buttons that choose one of a few views. The chosen one is pressed. */
export function tabs<Name extends string>(
  label: string,
  names: readonly Name[],
  { chosen, onChoose }: { chosen: Name; onChoose: (name: Name) => void },
): HTMLElement {
  const buttons = names.map((name) =>
    el(
      'button',
      {
        type: 'button',
        'aria-pressed': String(name === chosen),
        onclick: () => {
          for (const each of buttons) {
            each.setAttribute('aria-pressed', String(each.textContent === name))
          }
          onChoose(name)
        },
      },
      name,
    ),
  )
  return el('div', { class: 'tabs', role: 'group', 'aria-label': label }, ...buttons)
}

/** A bar that shows how much of a limit is used. `show` formats a count. */
export function usage(
  label: string,
  { used, limit, show }: { used: number; limit: number; show: (count: number) => string },
): HTMLElement {
  return el(
    'div',
    { class: 'usage' },
    el(
      'div',
      { class: 'row between number' },
      el('span', {}, label),
      el('span', { class: 'quiet' }, `${show(used)} of ${show(limit)}`),
    ),
    el('progress', { 'aria-label': label, max: String(limit), value: String(used) }),
  )
}

/** A placeholder for the next step, a QR code or text, while it loads. */
export function working(what: string, next: 'qr' | 'text' = 'qr'): HTMLElement {
  return el(
    'div',
    { class: 'card stack narrow' },
    el('p', { class: 'state', 'data-state': 'waiting', role: 'status' }, `${what}…`),
    el('div', { class: `skeleton ${next}`, 'aria-hidden': 'true' }),
  )
}

/** Shows a message for a few seconds. */
export function toast(text: string): void {
  const line = el('p', {}, text)
  byId('toasts').append(line)
  setTimeout(() => line.remove(), TOAST_MS)
}

/** Tells screen readers, and nobody else, what has happened. */
export function announce(text: string): void {
  const place = byId('announcer')
  // The same text once more is announced only if it is a new node.
  fill(place, el('span', {}, text))
}

/**
 * Asks before an action that cannot be undone. `keep` is the button that leaves all as it is. Resolves to true
 * if the user confirms.
 */
export function confirmed(
  title: string,
  { body, action, keep = 'Keep it' }: { body: string; action: string; keep?: string },
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const close = showDialog(
    title,
    [
      el('p', {}, body),
      el(
        'div',
        { class: 'row' },
        button(keep, () => close()),
        button(
          action,
          () => {
            resolve(true)
            close()
          },
          { kind: 'danger' },
        ),
      ),
    ],
    () => resolve(false),
  )
  return promise
}

/** Shows the selected text, because the browser does not let the page copy it. */
function showToCopy(text: string, onCopied?: () => void): void {
  const area = el('textarea', {
    readonly: true,
    rows: '6',
    'aria-label': 'The text',
    oncopy: onCopied,
  })
  area.value = text
  const close = showDialog('Copy it by hand', [
    el(
      'p',
      {},
      'This browser does not let the page copy. The text below is selected: copy it yourself.',
    ),
    area,
    el(
      'div',
      { class: 'row' },
      button('Close', () => close()),
    ),
  ])
  area.select()
}

/** Shows a modal dialog, until the user or the returned function closes it. */
export function showDialog(
  title: string,
  parts: Child[],
  onClosed: () => void = () => {},
): () => void {
  const dialog = el(
    'dialog',
    {
      class: 'stack',
      'aria-labelledby': 'dialog-title',
      onclose: () => {
        onClosed()
        dialog.remove()
      },
    },
    el('h2', { id: 'dialog-title' }, title),
    ...parts,
  )
  document.body.append(dialog)
  dialog.showModal()
  return () => dialog.close()
}

/** Downloads a file that the page has made. */
export function download(name: string, bytes: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([bytes], { type }))
  el('a', { href: url, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // The context is not secure, or the browser does not allow it.
    const area = el('textarea', { class: 'visually-hidden', 'aria-hidden': 'true' })
    area.value = text
    document.body.append(area)
    area.select()
    const isCopied = document.execCommand('copy')
    area.remove()
    return isCopied
  }
}
