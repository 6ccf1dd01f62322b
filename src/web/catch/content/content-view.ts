/** Shows bytes that a stranger sent, in every form that fits them. They are never parsed as markup. */
import { copyButton, tabs } from '../../components.ts'
import { el, fill } from '../../dom.ts'
import { plainly } from '../../foreign.ts'
import { count, bytes as sized } from '../../format.ts'
import { showLate } from '../../late.ts'
import { textOf } from './charset.ts'
import type { Content } from './content.ts'
import { jsonView } from './json-view.ts'
import { mediaOf, pictureType } from './media.ts'
import { pairsTable } from './table.ts'

/** Only this much is drawn. The download has all of it. */
const MAX_SHOWN_CHARACTERS = 200_000
const MAX_SHOWN_BYTES = 16 * 1024
/** A longer form, which only unpacking makes, would have millions of fields. */
const MAX_FORM_CHARACTERS = 1024 * 1024
/** Mail nests forwarded mail. Deeper parts are shown as text. */
const MAX_DEPTH = 3
const HEX_COLUMNS = 16

type Form = { name: string; show: () => HTMLElement }

export function contentView(content: Content): HTMLElement {
  const { bytes, contentType, sent } = content
  const media = mediaOf(contentType)
  const decoded = textOf(bytes, media)
  const forms = formsOf(content, decoded?.text ?? null)
  const [best] = forms
  const shown = el('div', {}, best?.show())
  const chooser = tabs(
    `Form of the ${content.label.toLowerCase()}`,
    forms.map(({ name }) => name),
    {
      chosen: best?.name ?? '',
      onChoose: (name) => fill(shown, forms.find((form) => form.name === name)?.show()),
    },
  )
  const size = sent ? `${sized(sent.length)}, unpacked ${sized(bytes.length)}` : sized(bytes.length)
  return el(
    'div',
    { class: 'stack' },
    el(
      'div',
      { class: 'row between' },
      el(
        'div',
        { class: 'row' },
        chooser,
        decoded !== null &&
          copyButton(() => decoded.text, {
            label: `Copy ${content.label.toLowerCase()}`,
            kind: 'small',
          }),
      ),
      el('span', { class: 'small quiet' }, `${size} · ${plainly(contentType ?? 'no type')}`),
    ),
    decoded?.remark && el('p', { class: 'small quiet' }, decoded.remark),
    shown,
  )
}

/** The forms that fit, the best first. */
function formsOf(content: Content, text: string | null): Form[] {
  const { bytes, contentType, label, sent, depth } = content
  const { type } = mediaOf(contentType)
  const forms: Form[] = []
  const picture = pictureType(bytes)
  if (picture !== null) forms.push({ name: 'Picture', show: () => pictureView(bytes, picture) })
  if (type.startsWith('multipart/') && depth < MAX_DEPTH) {
    forms.push({ name: 'Parts', show: () => partsView(content) })
  }
  if (text !== null) {
    if (type === 'application/x-www-form-urlencoded' && text.length <= MAX_FORM_CHARACTERS) {
      forms.push({
        name: 'Form',
        show: () => pairsTable('Fields', [...new URLSearchParams(text)]),
      })
    } else if (isJson(text, type)) {
      forms.push({ name: 'JSON', show: () => jsonView(text, label) })
    }
    forms.push({ name: 'Text', show: () => textView(text, label) })
  }
  forms.push({ name: 'Hex', show: () => hexView(bytes, label) })
  if (sent) forms.push({ name: 'As sent', show: () => hexView(sent, label) })
  return forms
}

function partsView(content: Content): HTMLElement {
  return showLate(async () => {
    const { multipartView } = await import('./multipart-view.ts')
    return multipartView(content, contentView)
  })
}

/** A picture of pixels. The browser decodes it, and the page only knows that it did. */
function pictureView(bytes: Uint8Array<ArrayBuffer>, type: string): HTMLElement {
  const url = URL.createObjectURL(new Blob([bytes], { type }))
  const caption = el('figcaption', { class: 'small quiet' }, type)
  const image: HTMLImageElement = el('img', {
    class: 'picture',
    alt: 'The picture that was sent',
    decoding: 'async',
    onload: (): void => done(`${type}, ${image.naturalWidth} × ${image.naturalHeight} pixels`),
    onerror: (): void => done(`This browser cannot show it, although it begins like ${type}.`),
  })
  function done(text: string): void {
    URL.revokeObjectURL(url)
    caption.textContent = text
  }
  image.src = url
  return el('figure', { class: 'stack' }, image, caption)
}

function textView(text: string, label: string): HTMLElement {
  const isCut = text.length > MAX_SHOWN_CHARACTERS
  const shown = isCut ? text.slice(0, MAX_SHOWN_CHARACTERS) : text
  return preformatted(shown, {
    label,
    cut: isCut ? `The first ${count(shown.length)} of ${count(text.length)} characters` : null,
  })
}

function hexView(bytes: Uint8Array, label: string): HTMLElement {
  const isCut = bytes.length > MAX_SHOWN_BYTES
  return preformatted(hexDump(bytes.subarray(0, MAX_SHOWN_BYTES)), {
    label,
    kind: 'hex',
    cut: isCut ? `The first ${sized(MAX_SHOWN_BYTES)} of ${sized(bytes.length)}` : null,
  })
}

/** What is cut is said first: nobody reads to the end to learn it. */
function preformatted(
  text: string,
  { label, kind = '', cut }: { label: string; kind?: string; cut: string | null },
): HTMLElement {
  return el(
    'div',
    { class: 'stack' },
    cut !== null && el('p', { class: 'small quiet' }, `${cut}; the rest is in the download.`),
    el(
      'pre',
      { class: `content ${kind}`, tabindex: '0', role: 'group', 'aria-label': label },
      el('code', {}, plainly(text)),
    ),
  )
}

function isJson(text: string, type: string): boolean {
  const isCalledJson = /[/+]json$/.test(type)
  if (!isCalledJson && !/^[\s]*[[{]/.test(text.slice(0, 1_000))) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function hexDump(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += HEX_COLUMNS) {
    const row = [...bytes.subarray(at, at + HEX_COLUMNS)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row
      .map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '.'))
      .join('')
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(HEX_COLUMNS * 3 - 1)}  ${text}`)
  }
  return lines.join('\n')
}
