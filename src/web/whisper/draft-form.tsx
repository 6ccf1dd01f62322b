/** The form for a new secret: its content, how often it can be read, and what else is wanted. */
import type { RefObject } from 'preact'
import { MAX_READS } from '../../protocol/whisper-code.ts'
import { envelopeLength } from '../../protocol/whisper-envelope.ts'
import { bytes, ZONE } from '../lib/format.ts'
import { clock } from '../lib/service.ts'
import { Button, Choice } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Field, Input } from '../ui/field.tsx'
import { Fold } from '../ui/show.tsx'
import { type Draft, draft, edit, type Sealing, sizeIn, sizeOf } from './draft.ts'

/** @param form says what is missing or wrong, in the words of the browser: the plans below ask it. */
export function DraftForm({ form }: { form: RefObject<HTMLFormElement | null> }) {
  const now = draft.value
  const found = sizeIn(now)

  /** The whole form accepts a drop, or the browser would open a file that is dropped beside the field. */
  function dropped(event: DragEvent): void {
    event.preventDefault()
    const [fallen] = event.dataTransfer?.files ?? []
    if (fallen) edit({ kind: 'File', file: fallen })
  }

  return (
    <form
      ref={form}
      method="dialog"
      class="card stack draft"
      aria-label="The secret"
      onSubmit={(event) => event.preventDefault()}
      onDragOver={(event) => event.preventDefault()}
      onDrop={dropped}
    >
      <Choice
        label="Content"
        names={['Text', 'File']}
        chosen={now.kind}
        onChoose={(kind) => edit({ kind })}
      />
      {now.kind === 'Text' ? (
        <Input
          label="Text"
          rows={5}
          dir="auto"
          autocapitalize="sentences"
          required
          value={now.text}
          // Spaces alone are an accident, and the reader would take them for a loss.
          onText={(text) => edit({ text: text.trim() === '' ? '' : text })}
        />
      ) : (
        <Field label="File" hint={now.file ? undefined : 'Or drop one here.'}>
          <input
            type="file"
            required={now.file === null}
            ref={(input) =>
              input?.setCustomValidity(now.file?.size === 0 ? 'This file is empty.' : '')
            }
            onChange={({ currentTarget }) => edit({ file: currentTarget.files?.[0] ?? null })}
          />
        </Field>
      )}
      <p class="small quiet number" role="status">
        {found === null ? 'Encrypted in this page before it is sent.' : sizeText(now, found)}
      </p>
      <div class="row readers">
        <Input
          label="How often it can be read"
          type="number"
          min="1"
          max={MAX_READS}
          step="1"
          required
          value={now.reads}
          onText={(reads) => edit({ reads })}
        />
        <Input
          label="Password (optional)"
          placeholder="none"
          value={now.password}
          onText={(password) => edit({ password })}
        />
        <div class="row nowrap">
          <Button label="Suggest a password" onClick={suggest}>
            Suggest
          </Button>
          {now.password !== '' && <CopyButton text={now.password} label="Copy the password" />}
        </div>
      </div>
      <Fold title="More: receipt, opening time, switch" open={hasMore(now)}>
        {() => <More />}
      </Fold>
    </form>
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
          onChange={({ currentTarget }) => edit({ receipt: currentTarget.checked })}
        />
        <span>With a receipt that shows when it was read</span>
      </label>
      <Input
        label={`Opens at (${ZONE})`}
        hint="Nobody can read it before."
        type="datetime-local"
        step="60"
        min={nextMinute()}
        value={now.opensAt}
        onText={(opensAt) => edit({ opensAt })}
      />
      <Input
        label="Opens when a monitor falls silent"
        hint="Paste the switch id from the monitor’s page. The secret then has a receipt."
        placeholder="pulse_switch_…"
        title="pulse_switch_ and 22 letters or digits"
        pattern="\s*pulse_switch_[A-Za-z0-9]{22}\s*"
        value={now.switchId}
        onText={(switchId) => edit({ switchId })}
      />
    </div>
  )
}

/** As the field has it: in the person's own zone, which it does not name. */
function nextMinute(): string {
  const at = new Date(clock.now() + 60_000)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
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
  edit({ password: made, suggested: made })
}
