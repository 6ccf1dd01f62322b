/** What a whisper is to hold, and how it may be read, as the form takes it. */
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
  /** The length of what would be uploaded, or null while there is nothing to seal. */
  sealedLength(): number | null
  /** The reads that were asked for, or null where the plan decides. */
  readLimit(): number | null
  /** A sentence about what is missing or wrong, or null. */
  problem(): string | null
  draft(): Promise<Draft>
}

/** @param onChange is called when a size or a limit may have changed. */
export function draftForm(onChange: () => void): DraftForm {
  let isFile = false
  let chosen: File | null = null
  const text = el('textarea', { rows: '9', dir: 'auto', spellcheck: 'false', autocomplete: 'off' })
  const file = el('input', { type: 'file' })
  const about = el('p', { class: 'small quiet number', role: 'status' })
  const reads = el('input', { type: 'number', min: '1', max: String(MAX_READS), step: '1' })
  reads.placeholder = 'all of the plan'
  const reveal = el('input', { type: 'datetime-local', step: '60' })
  const password = el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' })
  password.placeholder = 'none'
  const drop = el(
    'div',
    { class: 'drop' },
    field('File', file),
    el('p', { class: 'small quiet' }, 'Or drop one here.'),
  )
  const content = el('div', { class: 'draft' })
  const kinds = tabs('What it holds', ['Text', 'File'], { chosen: 'Text', onChoose: show })

  for (const input of [text, reads, reveal, password]) input.addEventListener('input', changed)
  file.addEventListener('change', () => {
    chosen = file.files?.[0] ?? null
    changed()
  })
  show('Text')

  function show(kind: 'Text' | 'File'): void {
    isFile = kind === 'File'
    fill(content, isFile ? drop : field('Text', text))
    changed()
  }

  function dropped(event: Event): void {
    event.preventDefault()
    const [fallen] = (event as DragEvent).dataTransfer?.files ?? []
    if (!fallen) return
    chosen = fallen
    // As if the person had chosen it, so that the pressed one is right.
    if (isFile) changed()
    else kinds.querySelector<HTMLElement>('[aria-pressed="false"]')?.click()
  }

  function changed(): void {
    const length = sealedLength()
    const name = isFile && chosen ? `${chosen.name}, ` : ''
    const said =
      length === null
        ? 'Nothing to encrypt yet.'
        : `${name}${bytes(length)} once encrypted, with padding that hides the exact size.`
    // A reader hears of a change alone, and not of each key.
    if (about.textContent !== said) about.textContent = said
    onChange()
  }

  function sealedLength(): number | null {
    const hasPassword = password.value !== ''
    if (!isFile) {
      const dataBytes = utf8(text.value).length
      return dataBytes === 0 ? null : envelopeLength({ dataBytes, hasPassword })
    }
    if (!chosen) return null
    return envelopeLength({ dataBytes: chosen.size, ...described(chosen), hasPassword })
  }

  function readLimit(): number | null {
    return reads.value === '' ? null : Number(reads.value)
  }

  function problem(): string | null {
    if (sealedLength() === null) return isFile ? 'Choose a file first.' : 'Write something first.'
    if (isFile && chosen?.size === 0) return `${chosen.name} is empty. Choose another file.`
    if (!reads.validity.valid) return `Reads are a whole number from 1 to ${MAX_READS}.`
    if (!reveal.validity.valid) return 'The time to open needs both a date and a time of day.'
    if (reveal.value !== '' && !(Date.parse(reveal.value) > Date.now())) {
      return 'The time to open is over already.'
    }
    return null
  }

  async function draft(): Promise<Draft> {
    const limit = readLimit()
    return {
      ...(isFile && chosen
        ? { data: new Uint8Array(await chosen.arrayBuffer()), ...described(chosen) }
        : { data: utf8(text.value) }),
      ...(password.value === '' ? {} : { password: password.value }),
      ...(limit === null ? {} : { readLimit: limit }),
      // Without a zone it is the person's own time.
      ...(reveal.value === '' ? {} : { revealAt: new Date(reveal.value) }),
    }
  }

  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  const element = el(
    'div',
    // All of it, or the browser would leave for a file that is dropped beside the mark.
    { class: 'card stack', ondragover: (event) => event.preventDefault(), ondrop: dropped },
    kinds,
    content,
    about,
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
        button('Suggest one', () => {
          password.value = suggestion()
          changed()
        }),
      ),
    ),
    el(
      'p',
      { class: 'small quiet' },
      'All three are optional. Tell the password another way than the code: one does not open anything without the other.',
    ),
  )
  return { element, sealedLength, readLimit, problem, draft }
}

/** A name and a type that the envelope takes, from whatever the system says. */
function described({ name, type }: File): { name?: string; mediaType?: string } {
  const safe = safeName(name)
  return {
    ...(safe === null ? {} : { name: safe }),
    ...(isMediaType(type) ? { mediaType: type } : {}),
  }
}

/** 20 letters and digits without look-alikes, in groups that can be read out: 100 bits. */
function suggestion(): string {
  // 32 characters, so that five bits of a byte choose one without a bias.
  const characters = 'abcdefghijkmnpqrstuvwxyz23456789'
  const random = crypto.getRandomValues(new Uint8Array(20))
  const letters = [...random].map((byte) => characters[byte % characters.length] ?? '')
  return [0, 5, 10, 15].map((at) => letters.slice(at, at + 5).join('')).join('-')
}
