/** The form for a new whisper: its content, and how it may be read. */
import { utf8 } from '../../lib/bytes.ts'
import { envelopeLength, isMediaType, safeName } from '../../protocol/whisper-envelope.ts'
import { MAX_READS } from '../../protocol/whisper-limits.ts'
import { button, copyButton, field, tabs } from '../components.ts'
import { el, fill } from '../dom.ts'
import { bytes } from '../format.ts'
import { type Sealing, sizeOf, upTo } from './sizes.ts'
import { type Telling, tellingInputs } from './telling.ts'

export type Draft = Telling & {
  data: Uint8Array
  name?: string
  mediaType?: string
  password?: string
  readLimit: number
  revealAt?: Date
}

/** What is missing or invalid, and the input where it is mended. */
export type Problem = { text: string; input: HTMLElement }

export type DraftForm = {
  element: HTMLElement
  /** Whether there is nothing that a closed tab would lose. */
  isEmpty(): boolean
  /** The length of the content and what is sealed with it, or null while there is none. */
  size(): { dataBytes: number; sealing: Sealing } | null
  /** The chosen number of reads, or null if it is invalid. */
  readLimit(): number | null
  /** The chosen opening time, or null. */
  revealAt(): Date | null
  problem(): Problem | null
  /** The password if this page suggested it. */
  suggested(): string | null
  draft(): Promise<Draft>
  /** Says how large the content may be, in bytes. */
  showLargest(bytes: number): void
  clear(): void
}

/** @param onChange is called when anything of the form may have changed. */
export function draftForm(onChange: () => void): DraftForm {
  const content = contentInput(changed)
  const options = optionInputs(changed)
  const telling = tellingInputs(changed)
  const about = el('p', { class: 'small quiet number', role: 'status' })
  let largest = 0
  changed()

  function changed(): void {
    const found = size()
    const nothing =
      largest === 0 ? 'Nothing to encrypt yet.' : `Up to ${upTo(largest)}, as text or as a file.`
    const said = found === null ? nothing : sizeText(found, content.file()?.name)
    // A screen reader announces only changes, not each key.
    if (about.textContent !== said) about.textContent = said
    onChange()
  }

  function size(): { dataBytes: number; sealing: Sealing } | null {
    const found = content.size()
    const hasPassword = options.password() !== ''
    return found && { dataBytes: found.dataBytes, sealing: { ...found.described, hasPassword } }
  }

  const element = el(
    'div',
    {
      class: 'card stack',
      // The whole form accepts a drop, or the browser would open a file that is dropped beside the field.
      ondragover: (event) => event.preventDefault(),
      ondrop: content.dropped,
    },
    ...content.elements,
    about,
    ...options.elements,
    ...telling.elements,
  )
  return {
    element,
    isEmpty: () => size() === null,
    size,
    readLimit: options.readLimit,
    revealAt: options.revealAt,
    problem: () => content.problem() ?? options.problem() ?? telling.problem(),
    suggested: options.suggested,
    draft: async () => ({
      ...(await content.draft()),
      ...options.draft(),
      ...telling.telling(),
    }),
    showLargest(bytes) {
      largest = bytes
      changed()
    },
    clear() {
      content.clear()
      options.clear()
      telling.clear()
      changed()
    },
  }
}

function sizeText(
  { dataBytes, sealing }: { dataBytes: number; sealing: Sealing },
  name?: string,
): string {
  const length = envelopeLength({ ...sealing, dataBytes })
  const named = name === undefined ? '' : `${name}, `
  return `${named}${sizeOf(dataBytes)}. Sent as ${bytes(length)}: encrypted, and padded to hide the exact size.`
}

/** The inputs for the content: a text or a file. */
function contentInput(onChange: () => void) {
  let isFile = false
  let chosen: File | null = null
  const text = el('textarea', { rows: '9', dir: 'auto', spellcheck: 'false', autocomplete: 'off' })
  const input = el('input', { type: 'file' })
  const drop = el(
    'div',
    { class: 'drop' },
    field('File', input),
    el('p', { class: 'small quiet' }, 'Or drop one here.'),
  )
  const shown = el('div', { class: 'draft' }, field('Text', text))
  const kinds = tabs('What to send', ['Text', 'File'], { chosen: 'Text', onChoose: show })

  text.addEventListener('input', onChange)
  input.addEventListener('change', () => {
    chosen = input.files?.[0] ?? null
    onChange()
  })

  const file = (): File | null => (isFile ? chosen : null)

  function show(kind: 'Text' | 'File'): void {
    isFile = kind === 'File'
    fill(shown, isFile ? drop : field('Text', text))
    onChange()
  }

  function dropped(event: Event): void {
    event.preventDefault()
    const [fallen] = (event as DragEvent).dataTransfer?.files ?? []
    if (!fallen) return
    chosen = fallen
    // Otherwise the input would go on saying that no file is chosen.
    const files = new DataTransfer()
    files.items.add(fallen)
    input.files = files.files
    // Selects the tab as if the user had clicked it, so that the right one is pressed.
    if (isFile) onChange()
    else kinds.querySelector<HTMLElement>('[aria-pressed="false"]')?.click()
  }

  function size() {
    if (isFile) return chosen && { dataBytes: chosen.size, described: described(chosen) }
    const dataBytes = utf8(text.value).length
    return dataBytes === 0 ? null : { dataBytes, described: {} }
  }

  function problem(): Problem | null {
    // Spaces alone are an accident, and the reader would take them for a loss.
    if (!isFile) {
      return text.value.trim() === '' ? { text: 'Write something first.', input: text } : null
    }
    if (!chosen) return { text: 'Choose a file first.', input }
    return chosen.size === 0
      ? { text: `${chosen.name} is empty. Choose another file.`, input }
      : null
  }

  async function draft(): Promise<Pick<Draft, 'data' | 'name' | 'mediaType'>> {
    const one = file()
    if (!one) return { data: utf8(text.value) }
    return { data: new Uint8Array(await one.arrayBuffer()), ...described(one) }
  }

  function clear(): void {
    text.value = ''
    input.value = ''
    chosen = null
  }

  return { elements: [kinds, shown], file, dropped, size, problem, draft, clear }
}

/** The inputs for how the whisper may be read. */
function optionInputs(onChange: () => void) {
  const reads = el('input', {
    type: 'number',
    min: '1',
    max: String(MAX_READS),
    step: '1',
    required: true,
    value: '1',
  })
  const reveal = el('input', { type: 'datetime-local', step: '60' })
  const password = el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' })
  password.placeholder = 'none'
  let made = ''
  const copy = copyButton(() => password.value, { label: 'Copy it' })
  const changed = (): void => {
    copy.disabled = password.value === ''
    onChange()
  }
  for (const input of [reads, reveal, password]) input.addEventListener('input', changed)
  copy.disabled = true

  function suggest(): void {
    made = suggestion()
    password.value = made
    changed()
  }

  const readLimit = (): number | null => (reads.validity.valid ? Number(reads.value) : null)

  // The input has no time zone, so `Date` reads it in the user's own.
  const revealAt = (): Date | null => (reveal.value === '' ? null : new Date(reveal.value))

  function problem(): Problem | null {
    if (!reads.validity.valid) {
      return { text: `Reads must be a whole number from 1 to ${MAX_READS}.`, input: reads }
    }
    if (!reveal.validity.valid) {
      return { text: 'The opening time needs both a date and a time of day.', input: reveal }
    }
    const opensAt = revealAt()
    return opensAt && !(opensAt.getTime() > Date.now())
      ? { text: 'The opening time is in the past.', input: reveal }
      : null
  }

  function draft(): Pick<Draft, 'password' | 'readLimit' | 'revealAt'> {
    const opensAt = revealAt()
    return {
      ...(password.value === '' ? {} : { password: password.value }),
      readLimit: readLimit() ?? 1,
      ...(opensAt === null ? {} : { revealAt: opensAt }),
    }
  }

  function clear(): void {
    reads.value = '1'
    reveal.value = ''
    password.value = ''
    copy.disabled = true
  }

  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  const elements = [
    el(
      'div',
      { class: 'pairs' },
      field('Reads', reads),
      field(`Opens at (${timeZone})`, reveal),
      field('Password', password),
      el(
        'div',
        { class: 'field' },
        el('span', {}, 'Strong password'),
        el('div', { class: 'row even' }, button('Suggest one', suggest), copy),
      ),
    ),
    el(
      'p',
      { class: 'small quiet' },
      'Opening time and password are optional. Send the password separately; both are needed to open it.',
    ),
  ]
  const suggested = (): string | null =>
    password.value !== '' && password.value === made ? made : null
  const given = (): string => password.value
  return { elements, password: given, suggested, readLimit, revealAt, problem, draft, clear }
}

/** The name and type of a file, as far as the envelope accepts them. */
function described({ name, type }: File): { name?: string; mediaType?: string } {
  const safe = safeName(name)
  return {
    ...(safe === null ? {} : { name: safe }),
    ...(isMediaType(type) ? { mediaType: type } : {}),
  }
}

/** A random password of 100 bits: 20 letters and digits without look-alikes, in groups for reading aloud. */
function suggestion(): string {
  // 32 characters, so that five bits of a byte choose each with the same probability.
  const characters = 'abcdefghijkmnpqrstuvwxyz23456789'
  const random = crypto.getRandomValues(new Uint8Array(20))
  const letters = [...random].map((byte) => characters[byte % characters.length] ?? '')
  return [0, 5, 10, 15].map((at) => letters.slice(at, at + 5).join('')).join('-')
}
