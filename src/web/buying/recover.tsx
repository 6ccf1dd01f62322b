/** The page for who has paid and got nothing: by the recovery text, or by the whole invoice and its preimage. */
import './buying.css'
import { useSignal } from '@preact/signals'
import { MayflyError } from '../../client/errors.ts'
import { extensionOf } from '../../client/extension.ts'
import { errorOf } from '../../client/http.ts'
import type { AnyCapability } from '../../client/index.ts'
import { sharedWhisper } from '../../client/whisper.ts'
import { sentence, when } from '../lib/format.ts'
import { keep, keyFileName, keyText, openHere } from '../lib/keys.ts'
import { service } from '../lib/service.ts'
import { THINGS } from '../lib/terms.ts'
import {
  end,
  type PendingSecret,
  parseRecovery,
  type Unfinished,
  unfinished,
} from '../lib/unfinished.ts'
import { mount } from '../ui/page.tsx'
import { Button, CopyButton, download, Field, Fold, Notice, State, StepHeading } from '../ui/ui.tsx'

type Opens = Pick<PendingSecret, 'key' | 'hasPassword'>
type Found =
  | { capability: AnyCapability; purchase: Unfinished | null }
  | { expiresAt: string }
  | { keyless: string }

/** A whole invoice, as wallets and QR codes write it. */
const plainInvoice = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replace(/^lightning:/, '')

const SENTENCES: Record<string, string> = {
  'order not found':
    'No paid order fits this. Check that the invoice is whole, and that the preimage is of this payment.',
  pending:
    'The service has not seen the payment yet. If your wallet says that it is paid, try again soon.',
}

async function recover(text: string, preimage: string): Promise<Found> {
  const recovery = parseRecovery(text)
  const bolt11 = plainInvoice(text)
  const mine = unfinished.value.find(
    ({ quote, idempotencyKey }) =>
      quote?.bolt11 === bolt11 || idempotencyKey === recovery?.idempotencyKey,
  )
  const answer = await (recovery
    ? service.request({
        path: `/api/payments/${encodeURIComponent(recovery.orderId)}`,
        headers: { 'idempotency-key': recovery.idempotencyKey },
      })
    : service.request({
        method: 'POST',
        path: '/api/payments/recover',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ bolt11, preimage: preimage.trim().toLowerCase() }),
      }))
  if (answer.status === 402) throw new Pending()
  if (answer.status !== 200) throw errorOf(answer)
  return foundIn(answer.body, mine ?? null, recovery?.secret ?? mine?.secret ?? null)
}

class Pending extends Error {}

function foundIn(body: unknown, purchase: Unfinished | null, opens: Opens | null): Found {
  const { resource, extended } = (body ?? {}) as { resource?: unknown; extended?: unknown }
  if (extended === true) {
    const done = extensionOf(body)
    if ('replacement' in done) return { capability: done.replacement, purchase }
    if (purchase) end(purchase)
    return done
  }
  const capability = resource as AnyCapability
  if (capability?.product !== 'whisper') return { capability, purchase }
  if (!opens) return { keyless: capability.expiresAt }
  return { capability: sharedWhisper(capability, opens), purchase }
}

function Page() {
  const text = useSignal('')
  const problem = useSignal<string | null>(null)
  const found = useSignal<Found | null>(null)
  const isBusy = useSignal(false)
  const isInvoice = /^ln[a-z0-9]{20,}$/.test(plainInvoice(text.value))

  async function submit(event: Event & { currentTarget: HTMLFormElement }): Promise<void> {
    event.preventDefault()
    const preimage = String(new FormData(event.currentTarget).get('preimage') ?? '')
    isBusy.value = true
    problem.value = null
    try {
      found.value = await recover(text.value, preimage)
    } catch (error) {
      const phrase = error instanceof MayflyError ? error.phrase : ''
      problem.value =
        error instanceof Pending
          ? (SENTENCES.pending ?? '')
          : (SENTENCES[phrase] ?? sentence(error))
    }
    isBusy.value = false
  }

  if (found.value) return <Recovered found={found.value} />
  return (
    <div class="stack loose narrow">
      <div class="stack tight">
        <h1>Recover a payment</h1>
        <p class="lead">You paid, and have nothing? Your payment proves it.</p>
      </div>
      <form class="card stack" aria-label="Recover a payment" onSubmit={submit}>
        <Field
          label="Recovery text, or the whole invoice"
          hint="Your wallet shows the invoice (lnbc…) among the details of the payment."
        >
          <textarea
            rows={5}
            class="mono"
            spellcheck={false}
            autocomplete="off"
            autocapitalize="off"
            required
            value={text.value}
            onInput={({ currentTarget }) => {
              text.value = currentTarget.value
            }}
          />
        </Field>
        {isInvoice && (
          <Field label="Preimage, or proof of payment" hint="64 digits, beside the invoice.">
            <input
              name="preimage"
              type="text"
              class="mono"
              autocomplete="off"
              spellcheck={false}
              required
              pattern="\s*[0-9a-fA-F]{64}\s*"
            />
          </Field>
        )}
        {problem.value !== null && <Notice kind="bad">{problem.value}</Notice>}
        <div class="row">
          <Button submits weight="primary" size="large" disabled={isBusy.value}>
            Recover
          </Button>
        </div>
        <p class="small quiet">
          Both are sent to this service alone. A payment of another service is recovered there.
        </p>
      </form>
    </div>
  )
}

function Recovered({ found }: { found: Found }) {
  if ('expiresAt' in found) {
    return (
      <section class="card stack narrow">
        <StepHeading>Extended</StepHeading>
        <p>{`It ends ${when(found.expiresAt)}.`}</p>
      </section>
    )
  }
  if ('keyless' in found) {
    return (
      <section class="card stack narrow">
        <StepHeading>The secret is paid</StepHeading>
        <Notice kind="warn">
          Its encryption key was only in the browser that wrote it. Use that browser or its recovery
          text.
        </Notice>
      </section>
    )
  }
  const { capability, purchase } = found
  const { noun, page } = THINGS[capability.product]
  const held = { capability }
  const isSecret = capability.product === 'whisper'
  function saveAndOpen(): void {
    if (!keep(held)) return
    openHere({ ...held, isSaved: true })
    if (purchase) end(purchase)
    location.assign(page)
  }
  return (
    <section class="card stack narrow">
      <State kind="good">Found</State>
      <StepHeading>Your {noun} is here</StepHeading>
      {!isSecret && (
        <Button weight="primary" size="large wide" onClick={saveAndOpen}>
          Save and open
        </Button>
      )}
      {'code' in capability && capability.code !== undefined && (
        <>
          <CopyButton text={capability.code} weight="primary" size="large wide">
            Copy the code
          </CopyButton>
          <p class="small quiet">Its reader pastes the code at {location.origin}/read.</p>
        </>
      )}
      <div class="row">
        <Button
          icon="download"
          onClick={() => download(keyFileName(held), keyText(held), 'application/json')}
        >
          Download the key
        </Button>
        <CopyButton text={() => keyText(held)}>Copy the key</CopyButton>
      </div>
      <Fold title="Show the key">
        {() => (
          <pre class="content token" tabIndex={0} role="group" aria-label="The key">
            <code>{keyText(held).trim()}</code>
          </pre>
        )}
      </Fold>
    </section>
  )
}

mount(<Page />)
