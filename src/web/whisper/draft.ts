/** The form for a new whisper: its content, and how it may be read. */
import { utf8 } from '../../lib/bytes.ts'
import { envelopeLength, isMediaType, safeName } from '../../protocol/whisper-envelope.ts'
import { MAX_READS } from '../../protocol/whisper-limits.ts'
import { button, field, tabs } from '../components.ts'
import { el, fill } from '../dom.ts'
import { bytes } from '../format.ts'

export type Draft = {
  data: Uint8Array
  name?: string
  mediaType?: string
  password?: string
  readLimit?: number
  revealAt?: Date
}

export type DraftForm = {
  element: HTMLElement
  /** The number of bytes that would be uploaded, or null while the form is empty. */
  sealedLength(): number | null
  /** The chosen number of reads, or null if the plan decides. */
  readLimit(): number | null
  /** A sentence about missing or invalid input, or null. */
  problem(): string | null
  draft(): Promise<Draft>
}

/** @param onChange is called when a size or a limit may have changed. */
export function draftForm(onChange: () => void): DraftForm {
  const content = contentInput(changed)
  const options = optionInputs(changed)
  const about = el('p', { class: 'small quiet number', role: 'status' })
  changed()

  function changed(): void {
    const length = sealedLength()
    const file = content.file()
    const name = file ? `${file.name}, ` : ''
    const said =
      length === null
        ? 'Nothing to encrypt yet.'
        : `${name}${bytes(length)} once encrypted, with padding that hides the exact size.`
    // A screen reader announces only changes, not each key.
    if (about.textContent !== said) about.textContent = said
    onChange()
  }

  function sealedLength(): number | null {
    return content.sealedLength(options.password() !== '')
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
  )
  return {
    element,
    sealedLength,
    readLimit: options.readLimit,
    problem: () => content.problem() ?? options.problem(),
    draft: async () => ({ ...(await content.draft()), ...options.draft() }),
  }
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
  const kinds = tabs('What it holds', ['Text', 'File'], { chosen: 'Text', onChoose: show })

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
    // Selects the tab as if the user had clicked it, so that the right one is pressed.
    if (isFile) onChange()
    else kinds.querySelector<HTMLElement>('[aria-pressed="false"]')?.click()
  }

  function sealedLength(hasPassword: boolean): number | null {
    if (!isFile) {
      const dataBytes = utf8(text.value).length
      return dataBytes === 0 ? null : envelopeLength({ dataBytes, hasPassword })
    }
    if (!chosen) return null
    return envelopeLength({ dataBytes: chosen.size, ...described(chosen), hasPassword })
  }

  function problem(): string | null {
    if (!isFile) return text.value === '' ? 'Write something first.' : null
    if (!chosen) return 'Choose a file first.'
    return chosen.size === 0 ? `${chosen.name} is empty. Choose another file.` : null
  }

  async function draft(): Promise<Pick<Draft, 'data' | 'name' | 'mediaType'>> {
    const one = file()
    if (!one) return { data: utf8(text.value) }
    return { data: new Uint8Array(await one.arrayBuffer()), ...described(one) }
  }

  return { elements: [kinds, shown], file, dropped, sealedLength, problem, draft }
}

/** The inputs for how the whisper may be read. All are optional. */
function optionInputs(onChange: () => void) {
  const reads = el('input', { type: 'number', min: '1', max: String(MAX_READS), step: '1' })
  reads.placeholder = 'all of the plan'
  const reveal = el('input', { type: 'datetime-local', step: '60' })
  const password = el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' })
  password.placeholder = 'none'
  for (const input of [reads, reveal, password]) input.addEventListener('input', onChange)

  function suggest(): void {
    password.value = suggestion()
    onChange()
  }

  const readLimit = (): number | null => (reads.value === '' ? null : Number(reads.value))

  function problem(): string | null {
    if (!reads.validity.valid) return `Reads are a whole number from 1 to ${MAX_READS}.`
    if (!reveal.validity.valid) return 'The time to open needs both a date and a time of day.'
    if (reveal.value !== '' && !(Date.parse(reveal.value) > Date.now())) {
      return 'The time to open is over already.'
    }
    return null
  }

  function draft(): Pick<Draft, 'password' | 'readLimit' | 'revealAt'> {
    const limit = readLimit()
    return {
      ...(password.value === '' ? {} : { password: password.value }),
      ...(limit === null ? {} : { readLimit: limit }),
      // The input has no time zone, so `Date` reads it in the user's own.
      ...(reveal.value === '' ? {} : { revealAt: new Date(reveal.value) }),
    }
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
        el('span', {}, 'A strong password, made here'),
        button('Suggest one', suggest),
      ),
    ),
    el(
      'p',
      { class: 'small quiet' },
      'All three are optional. Tell the password another way than the code: one does not open anything without the other.',
    ),
  ]
  return { elements, password: () => password.value, readLimit, problem, draft }
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
