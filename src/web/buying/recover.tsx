/** The page for who has paid and got nothing: by the recovery text, or by the whole invoice and its preimage. */
import './buying.css'
import { useState } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import { newEndOf } from '../../client/extension.ts'
import { type AnyCapability, createMayfly } from '../../client/index.ts'
import { pollOf, resourceOf } from '../../client/order-requests.ts'
import { lastOf } from '../../client/record.ts'
import { sharedWhisper } from '../../client/whisper.ts'
import { reasonOf, when } from '../lib/format.ts'
import { downloadKey } from '../lib/keys.ts'
import { service, timedFetch } from '../lib/service.ts'
import { type Begun, end, parseRecovery, type Recovery, unfinished } from '../lib/unfinished.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { type Fields, Form, Input } from '../ui/field.tsx'
import { mount } from '../ui/overlay.tsx'
import { Head, Notice, StepHeading } from '../ui/show.tsx'
import { Bought, Ready } from './bought.tsx'

type Found =
  | { capability: AnyCapability; purchase: Begun | undefined }
  | { expiresAt: string }
  | { keyless: true }

/** A whole invoice, as wallets and QR codes write it. */
const plainInvoice = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replace(/^lightning:/, '')

function refusalOf(error: unknown): string {
  if (error instanceof MayflyError && error.status === 402) {
    return 'The service has not seen the payment yet. If your wallet shows it as paid, try again soon.'
  }
  const isUnknown = error instanceof MayflyError && error.phrase === 'order not found'
  return isUnknown
    ? 'No paid order matches. Check that the invoice is complete and that the preimage belongs to it.'
    : reasonOf(error)
}

const NEITHER = 'This is neither a recovery text nor a whole invoice. Copy all of it.'

async function recover(text: string, preimage: string): Promise<Found> {
  const recovery = parseRecovery(text)
  const bolt11 = recovery?.bolt11 ?? plainInvoice(text)
  const purchase = unfinished.value.find(({ record }) => lastOf(record).bolt11 === bolt11)
  const mayfly = createMayfly({ baseUrl: location.origin, fetch: timedFetch })
  const bought = recovery
    ? await collect(recovery)
    : await mayfly.recover({ bolt11, preimage: preimage.toLowerCase() })
  if (!('product' in bought)) {
    if (purchase) end(purchase)
    return bought
  }
  const capability = bought as AnyCapability
  if (capability.product !== 'whisper') return { capability, purchase }
  const opening = recovery?.opening ?? purchase?.record.whisper
  return opening ? { capability: sharedWhisper(capability, opening), purchase } : { keyless: true }
}

/** Asks for the order once: the service then looks at the payment. */
async function collect(claim: Recovery) {
  // Nobody remembers whether it extends anything, and the poll of extensions answers for every order.
  const poll = { ...pollOf(claim, { ...claim, extends: '' }), isRepeatable: true }
  const bought = resourceOf(await service.answer(poll))
  return newEndOf(bought) ?? (bought as AnyCapability)
}

function Page() {
  const [text, setText] = useState('')
  const [found, setFound] = useState<Found | null>(null)
  const isInvoice = /^ln[a-z0-9]{20,}$/.test(plainInvoice(text))
  if (found) return <Recovered found={found} />
  async function submit(field: Fields): Promise<string | undefined> {
    if (!isInvoice && parseRecovery(text) === null) return NEITHER
    setFound(await recover(text, field('preimage').trim()))
    return undefined
  }
  return (
    <div class="stack loose narrow">
      <Head title="Recover a payment">
        Paid, and nothing came? The payment itself proves your claim.
      </Head>
      <Form
        card
        label="Recover a payment"
        action="Recover"
        explain={refusalOf}
        onSubmit={submit}
        note="What you enter goes to this service alone. Another service has its own page for this."
      >
        <Input
          label="Recovery text, or the whole invoice"
          hint="Your wallet shows the invoice (lnbc…) among the details of the payment."
          rows={5}
          class="mono"
          required
          value={text}
          onText={setText}
        />
        {isInvoice && (
          <Input
            label="Preimage, or proof of payment"
            hint="64 digits and letters, shown beside the invoice."
            title="64 characters, each a digit or a letter from a to f"
            name="preimage"
            class="mono"
            required
            pattern="\s*[0-9a-fA-F]{64}\s*"
          />
        )}
      </Form>
    </div>
  )
}

function Recovered({ found }: { found: Found }) {
  if ('keyless' in found) {
    return (
      <section class="card stack narrow">
        <StepHeading>The secret is paid</StepHeading>
        <Notice kind="warn">
          Its encryption key was only in the browser that wrote it. Use that browser or its recovery
          text.
        </Notice>
        <div class="row">
          <Button href="/recover">Enter a recovery text</Button>
        </div>
      </section>
    )
  }
  if (!('capability' in found)) {
    return (
      <section class="card stack narrow">
        <StepHeading>Extended</StepHeading>
        <p>{`It ends ${when(found.expiresAt)}. Its key stays the same.`}</p>
        <div class="row">
          <Button href="/catch">Inboxes</Button>
          <Button href="/pulse">Monitors</Button>
        </div>
      </section>
    )
  }
  const { capability, purchase } = found
  if (capability.product !== 'whisper') {
    return <Bought capability={capability} purchase={purchase} />
  }
  return (
    <section class="card stack narrow">
      <Ready noun="secret">
        Until <time dateTime={capability.expiresAt}>{when(capability.expiresAt)}</time>
      </Ready>
      <CopyButton text={capability.code ?? ''} weight="primary" size="large wide">
        Copy the code
      </CopyButton>
      <p class="small quiet">Its reader pastes the code at {location.origin}/read.</p>
      <div class="row">
        <Button icon="download" onClick={() => downloadKey({ capability })}>
          Download code and receipt
        </Button>
      </div>
    </section>
  )
}

mount(<Page />)
