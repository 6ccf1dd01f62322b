/** The page of GATE: verifies a receipt with the keys that the service publishes, and explains it. */
import { useRef, useState } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import { fetchGateKeys } from '../../client/gate.ts'
import { type GateKey, type GateReceipt, verifyReceipt } from '../../protocol/gate-receipt.ts'
import { sats, when } from '../lib/format.ts'
import { clock, service } from '../lib/service.ts'
import { Input } from '../ui/field.tsx'
import { mount } from '../ui/overlay.tsx'
import { Head, Loaded, Notice, State } from '../ui/show.tsx'

const OFF =
  'This service does not run GATE, so it has no keys to check a receipt. A receipt names the service that signed it: check it there.'

type Verdict = Awaited<ReturnType<typeof verifyReceipt>>

/** Null where GATE is off. */
async function loadKeys(): Promise<readonly GateKey[] | null> {
  return fetchGateKeys(service).catch((error: unknown) => {
    if (error instanceof MayflyError && error.status === 404) return null
    throw error
  })
}

function Page() {
  return (
    <div class="stack loose narrow">
      <Head title="Check a GATE receipt">
        GATE signs a receipt for each paid request. Paste one to see whether it is genuine. It never
        leaves this page.
      </Head>
      <Loaded load={loadKeys} waiting={<div class="skeleton" aria-hidden="true" />}>
        {(keys) => (keys === null ? <Notice>{OFF}</Notice> : <Check keys={keys} />)}
      </Loaded>
    </div>
  )
}

function Check({ keys }: { keys: readonly GateKey[] }) {
  const [verdict, setVerdict] = useState<Verdict | null>(null)
  const asked = useRef('')

  async function check(receipt: string): Promise<void> {
    asked.current = receipt
    const next = receipt === '' ? null : await verifyReceipt(receipt, keys)
    // The person has entered another text meanwhile, which gets its own answer.
    if (receipt === asked.current) setVerdict(next)
  }

  return (
    <div class="card stack">
      <Input
        label="The receipt, from the header Gate-Receipt or the answer’s “receipt”"
        rows={5}
        class="mono"
        placeholder="eyJhbGciOiJFZERTQSIs…"
        onText={(entered) => check(entered.trim())}
      />
      <div class="verdict stack" aria-live="polite">
        {verdict?.outcome === 'ok' && <Receipt receipt={verdict.receipt} />}
        {verdict?.outcome === 'refused' && <Notice kind="bad">{REASONS[verdict.reason]}</Notice>}
        {verdict?.outcome === 'unknown key' && <Notice kind="bad">{UNKNOWN_KEY}</Notice>}
      </div>
    </div>
  )
}

/** What each claim says, and in which order they are shown. */
const CLAIMS: Partial<Record<keyof GateReceipt, string>> = {
  htm: 'Method',
  htp: 'Path',
  sat: 'Price in sat, paid to the project’s own wallet',
  net: 'Network',
  by: 'How the payment was verified',
  iat: 'Signed',
  exp: 'Valid until',
  route: 'Route',
  aud: 'For the project',
  iss: 'Signed by',
  ph: 'Payment hash',
  req: 'Digest of project, route, method, path and body',
  intent: 'Payment intent',
  jti: 'Receipt id, the same for every copy',
}

const BY = {
  provider: 'The wallet that received the payment confirmed it.',
  preimage: 'The payer showed the preimage, which only paying reveals.',
}

/** A receipt with a valid signature: what it admits now, then each claim. */
function Receipt({ receipt }: { receipt: GateReceipt }) {
  const { iat, exp } = receipt
  const shown: Record<string, unknown> = {
    ...receipt,
    iat: whenOf(iat),
    exp: whenOf(exp),
    by: BY[receipt.by],
  }
  return (
    <section class="stack" aria-label="The receipt">
      <State kind="good">The signature is valid</State>
      <Worth receipt={receipt} />
      <table aria-label="Claims">
        <tbody>
          {Object.entries(CLAIMS).map(([name, label]) => (
            <tr key={name}>
              <th scope="row">
                {label} <code class="small quiet">{name}</code>
              </th>
              <td>{String(shown[name])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** Nothing that a forged receipt claims is shown. */
const REASONS: Record<string, string> = {
  malformed:
    'Not a receipt. A receipt is one line of three parts with two dots between them. Copy all of it.',
  'not a GATE receipt':
    'Another kind of signed text. The header of a receipt says EdDSA and gate-receipt+jwt.',
  'the signature is wrong':
    'Not valid. The signature does not match the text: something was changed, or a character was lost.',
  'a claim is missing': 'Not valid. A claim that every receipt has is missing.',
}
const UNKNOWN_KEY =
  'Not valid here. No current key of this service signed it: it is forged, very old, or of another service, which can check it.'

function Worth({ receipt: { exp, htm, htp, sat } }: { receipt: GateReceipt }) {
  const end = whenOf(exp)
  const rest =
    exp * 1000 > clock.now()
      ? `It admits this request once, until ${end}. After that it is still a record of the payment.`
      : `It expired at ${end}, so only an API that knows that it was never used still admits it. It is still a valid record of the payment.`
  return (
    <Notice>
      <strong>{`${htm} ${htp}`}</strong>
      {` was paid for with ${sats(sat)}. ${rest}`}
    </Notice>
  )
}

const whenOf = (seconds: number): string => when(new Date(seconds * 1000).toISOString())

mount(<Page />)
