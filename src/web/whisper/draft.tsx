/** The form for a new secret: its content, how often it can be read, and what else is wanted. */
import { signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { utf8 } from '../../lib/bytes.ts'
import { isId } from '../../lib/ids.ts'
import { envelopeLength, isMediaType, safeName } from '../../protocol/whisper-envelope.ts'
import { MAX_READS } from '../../protocol/whisper-limits.ts'
import { bytes, ZONE } from '../lib/format.ts'
import { clock } from '../lib/service.ts'
import { Button, Choice } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Field, Input } from '../ui/field.tsx'
import { Fold } from '../ui/show.tsx'
import { type Sealing, sizeOf } from './fits.ts'

const EMPTY = {
  kind: 'Text' as 'Text' | 'File',
  text: '',
  file: null as File | null,
  reads: '1',
  /** In the person's own zone, as the field has it. */
  opensAt: '',
  password: '',
  /** The password if this page made it, since nobody knows it by heart. */
  suggested: '',
  receipt: false,
  switchId: '',
}

export type Draft = typeof EMPTY
export const draft = signal<Draft>(EMPTY)

const set = (changes: Partial<Draft>): void => {
  draft.value = { ...draft.value, ...changes }
}

export const clearDraft = (): void => {
  draft.value = EMPTY
}

/** The length of the content and what is sealed with it, or null while there is none. */
export function sizeIn({
  kind,
  text,
  file,
  password,
}: Draft): { dataBytes: number; sealing: Sealing } | null {
  const hasPassword = password !== ''
  if (kind === 'File') {
    return file && { dataBytes: file.size, sealing: { ...described(file), hasPassword } }
  }
  const dataBytes = utf8(text).length
  return dataBytes === 0 ? null : { dataBytes, sealing: { hasPassword } }
}

export function readsIn({ reads }: Draft): number | null {
  const number = Number(reads)
  return /^\d+$/.test(reads) && number >= 1 && number <= MAX_READS ? number : null
}

/** The field has no time zone, so `Date` reads it in the person's own. */
export const revealAtIn = ({ opensAt }: Draft): Date | null =>
  opensAt === '' ? null : new Date(opensAt)

/** What is missing or wrong, and the label of the field where it is mended; null if nothing is. */
export function problemIn(now: Draft): { text: string; at: string } | null {
  const { kind, text, file, switchId } = now
  // Spaces alone are an accident, and the reader would take them for a loss.
  if (kind === 'Text' && text.trim() === '') return { text: 'Write something first.', at: 'text' }
  if (kind === 'File' && !file) return { text: 'Choose a file first.', at: 'file' }
  if (kind === 'File' && file?.size === 0) {
    return { text: `${file.name} is empty. Choose another file.`, at: 'file' }
  }
  if (readsIn(now) === null) {
    return { text: `Reads must be a whole number from 1 to ${MAX_READS}.`, at: 'reads' }
  }
  const revealAt = revealAtIn(now)
  if (revealAt && !(revealAt.getTime() > clock.now())) {
    return { text: 'The opening time is in the past.', at: 'opens' }
  }
  if (switchId.trim() !== '' && !isId('pulse_switch', switchId.trim())) {
    return {
      text: 'This is not a switch id. A switch id is pulse_switch_ and 22 letters or digits.',
      at: 'switch',
    }
  }
  return null
}

/** What is encrypted. */
export async function contentIn({ kind, text, file, password }: Draft) {
  const sealed = password === '' ? {} : { password }
  if (kind === 'File' && file) {
    return { data: new Uint8Array(await file.arrayBuffer()), ...described(file), ...sealed }
  }
  return { data: utf8(text), ...sealed }
}

/** The name and type of a file, as far as the envelope accepts them. */
function described({ name, type }: File): { name?: string; mediaType?: string } {
  const safe = safeName(name)
  return {
    ...(safe === null ? {} : { name: safe }),
    ...(isMediaType(type) ? { mediaType: type } : {}),
  }
}

export function DraftForm() {
  const now = draft.value
  const fileInput = useRef<HTMLInputElement>(null)
  const found = sizeIn(now)

  /** The whole form accepts a drop, or the browser would open a file that is dropped beside the field. */
  function dropped(event: DragEvent): void {
    event.preventDefault()
    const [fallen] = event.dataTransfer?.files ?? []
    if (fallen) set({ kind: 'File', file: fallen })
  }

  return (
    <div class="card stack draft" onDragOver={(event) => event.preventDefault()} onDrop={dropped}>
      <Choice
        label="Content"
        names={['Text', 'File']}
        chosen={now.kind}
        onChoose={(kind) => set({ kind })}
      />
      {now.kind === 'Text' ? (
        <Input
          label="Text"
          rows={5}
          dir="auto"
          autocapitalize="sentences"
          data-at="text"
          value={now.text}
          onText={(text) => set({ text })}
        />
      ) : (
        <Field label="File" hint={now.file ? undefined : 'Or drop one here.'}>
          <input
            ref={fileInput}
            type="file"
            data-at="file"
            onChange={({ currentTarget }) => set({ file: currentTarget.files?.[0] ?? null })}
          />
        </Field>
      )}
      <p class="small quiet number" role="status">
        {found === null ? 'Encrypted in this page before it is sent.' : sizeText(now, found)}
      </p>
      <div class="pairs">
        <Input
          label="How often it can be read"
          type="number"
          min="1"
          max={MAX_READS}
          step="1"
          data-at="reads"
          value={now.reads}
          onText={(reads) => set({ reads })}
        />
        <Input
          label="Password (optional)"
          placeholder="none"
          value={now.password}
          onText={(password) => set({ password })}
        />
        <div class="row password-tools">
          <Button onClick={suggest}>Suggest a password</Button>
          {now.password !== '' && (
            <CopyButton text={now.password} isBare label="Copy the password" />
          )}
        </div>
      </div>
      <Fold title="More: receipt, opening time, switch" open={hasMore(now)}>
        {() => <More />}
      </Fold>
    </div>
  )
}

const hasMore = ({ opensAt, receipt, switchId }: Draft): boolean =>
  receipt || opensAt !== '' || switchId !== ''

function More() {
  const now = draft.value
  const isBound = now.switchId.trim() !== ''
  return (
    <div class="stack">
      <label class="check">
        <input
          type="checkbox"
          checked={now.receipt || isBound}
          disabled={isBound}
          onChange={({ currentTarget }) => set({ receipt: currentTarget.checked })}
        />
        <span>With a receipt that shows when it was read</span>
      </label>
      <Input
        label={`Opens at (${ZONE})`}
        hint="Nobody can read it before."
        type="datetime-local"
        step="60"
        data-at="opens"
        value={now.opensAt}
        onText={(opensAt) => set({ opensAt })}
      />
      <Input
        label="Opens when a monitor falls silent"
        hint="Paste the switch id from the monitor’s page. The secret then has a receipt."
        placeholder="pulse_switch_…"
        data-at="switch"
        value={now.switchId}
        onText={(switchId) => set({ switchId })}
      />
    </div>
  )
}

function sizeText(
  { kind, file }: Draft,
  { dataBytes, sealing }: { dataBytes: number; sealing: Sealing },
): string {
  const length = envelopeLength({ ...sealing, dataBytes })
  const named = kind === 'File' && file ? `${file.name}, ` : ''
  return `${named}${sizeOf(dataBytes)}. Sent as ${bytes(length)}: encrypted, and padded to hide the exact size.`
}

/** A random password of 100 bits: 20 letters and digits without look-alikes, in groups for reading aloud. */
function suggest(): void {
  // 32 characters, so that five bits of a byte choose each with the same probability.
  const characters = 'abcdefghijkmnpqrstuvwxyz23456789'
  const random = crypto.getRandomValues(new Uint8Array(20))
  const letters = [...random].map((byte) => characters[byte % characters.length] ?? '')
  const made = [0, 5, 10, 15].map((at) => letters.slice(at, at + 5).join('')).join('-')
  set({ password: made, suggested: made })
}
