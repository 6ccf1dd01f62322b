/**
 * Shows the share code after the purchase, with the ways to pass it on. The code is never part of the reading page's
 * address, because a URL must not contain a secret.
 */
import { useSignal } from '@preact/signals'
import type { SharedWhisper } from '../../client/whisper.ts'
import { Ready } from '../buying/bought.tsx'
import { plural, utc, when } from '../lib/format.ts'
import { downloadKey, keep, keptOf, openHere } from '../lib/keys.ts'
import { BLOCKED, isStorageBlocked } from '../lib/storage.ts'
import { termsLine } from '../lib/terms.ts'
import type { Begun, PendingSecret } from '../lib/unfinished.ts'
import { Button } from '../ui/button.tsx'
import { CodeBox, CopyButton } from '../ui/copy.tsx'
import { confirmed, toast } from '../ui/overlay.tsx'
import { Fold, Notice, Pre, Qr } from '../ui/show.tsx'

type Part = 'code' | 'password' | 'receipt'

export function Share({
  whisper,
  purchase,
  hasPassword,
  password,
  onTaken,
  onAnother,
}: {
  whisper: SharedWhisper
  purchase: Begun & { secret: PendingSecret }
  hasPassword: boolean
  /** The password, or null if this page does not know it: it was typed before a reload. */
  password: string | null
  /** The person has all that the reader needs, and the receipt that was asked for. */
  onTaken: () => void
  onAnother: () => void
}) {
  const { code, expiresAt, receiptToken } = whisper
  const { secret } = purchase
  const text = message(whisper, { secret, hasPassword })
  const taken = useSignal<readonly Part[]>([])
  const needed: Part[] = [
    'code',
    ...(secret.suggested === null ? [] : (['password'] as const)),
    ...(receiptToken === undefined ? [] : (['receipt'] as const)),
  ]
  const left = needed.filter((part) => !taken.value.includes(part))

  function take(...parts: Part[]): void {
    const next = [...new Set([...taken.value, ...parts])]
    const isDone = needed.every((part) => next.includes(part))
    if (isDone && left.length > 0) onTaken()
    taken.value = next
  }

  async function writeAnother(): Promise<void> {
    const what = left[0] === 'receipt' ? 'receipt' : 'code'
    const question = { body: LOST[what], action: 'Lose it' }
    if (left.length > 0 && !(await confirmed(`Leave without the ${what}?`, question))) return
    onAnother()
  }

  return (
    <section class="card stack narrow" aria-label="Your secret">
      <Ready noun="secret">{termsLine(purchase)}</Ready>
      <CopyButton text={text} weight="primary" size="large wide" onCopied={() => take('code')}>
        Copy message
      </CopyButton>
      <p role="status" class="small">
        {stateOf(left)}
      </p>
      <Pre kind="content token" label="The message">
        {text}
      </Pre>
      <p class="small quiet">
        {`Anyone with the code${hasPassword ? ' and the password' : ''} can read it ${timesOf(secret)}${opening(secret)}, until ${when(expiresAt)}.`}
      </p>
      {hasPassword && <Password password={password} onCopied={() => take('password')} />}
      {receiptToken !== undefined && (
        <Receipt whisper={whisper} purchase={purchase} onKept={() => take('receipt')} />
      )}
      <Fold title="Other ways to pass on the code">
        {() => (
          <div class="stack">
            <Pre kind="content token" label="The share code">
              {code}
            </Pre>
            <div class="row">
              <CopyButton text={code} onCopied={() => take('code')}>
                Copy the code
              </CopyButton>
              <CopyButton text={`${location.origin}/read`}>Copy the address</CopyButton>
              <Button
                icon="download"
                onClick={() => {
                  downloadKey({ capability: whisper, planId: purchase.planId })
                  take('code', 'receipt')
                }}
              >
                Download
              </Button>
            </div>
            <p class="small quiet">
              No link has the code in it: browsers keep links, and chat programs open them.
            </p>
            {/* Drawn when it is opened: a camera nearby could read it. */}
            <Fold title="Show the code as a QR code">
              {() => <Qr text={code} label="QR code of the share code" />}
            </Fold>
          </div>
        )}
      </Fold>
      <div class="row">
        <Button onClick={writeAnother}>Write another</Button>
      </div>
    </section>
  )
}

const LOST = {
  code: 'Nobody can recover it: without the code the secret cannot be read.',
  receipt: 'Nobody can recover it: without the receipt you cannot see when it is read.',
}

function stateOf(left: readonly Part[]): string {
  const [next] = left
  if (next === undefined) return 'You have everything. This browser has forgotten the code.'
  const words = {
    code: 'Copy the message.',
    password: 'Copy the password too.',
    receipt: 'Save the receipt too.',
  }
  return isStorageBlocked()
    ? `${words[next]} This browser stores nothing: closing this page loses it.`
    : `${words[next]} Until then this browser keeps the secret’s key.`
}

function Password({ password, onCopied }: { password: string | null; onCopied: () => void }) {
  const lead = 'Send it separately. Both are needed to open the secret.'
  if (password === null) return <Notice>The password is the one that you typed. {lead}</Notice>
  return (
    <div class="stack tight">
      <h2>The password</h2>
      <p class="small quiet">{lead}</p>
      <CodeBox text={password} label="the password" wrapped onCopied={onCopied} />
    </div>
  )
}

function Receipt({
  whisper,
  purchase: { planId },
  onKept,
}: {
  whisper: SharedWhisper
  purchase: Begun
  onKept: () => void
}) {
  // The key stays out of what is kept: a receipt does not read.
  const { code: _, ...capability } = whisper
  const held = { capability, planId }
  const isBlocked = isStorageBlocked()
  function keepIt(): void {
    if (isBlocked) downloadKey(held)
    else if (!keep(held)) {
      toast(BLOCKED)
      return
    }
    onKept()
  }
  function open(): void {
    openHere({ ...held, isSaved: keptOf(capability.publicId) !== undefined })
    location.assign('/receipt')
  }
  return (
    <div class="stack tight">
      <h2>The receipt</h2>
      <p class="small quiet">Shows when it was read. It cannot open the secret.</p>
      <div class="row">
        <Button onClick={keepIt}>{isBlocked ? 'Download the receipt' : 'Save the receipt'}</Button>
        <Button onClick={open}>Open receipt</Button>
      </div>
    </div>
  )
}

/** From when it can be read, as a part of a sentence. */
function opening({ revealAt, revealWhen }: PendingSecret): string {
  const from = revealAt === null ? '' : `, from ${when(revealAt)}`
  return revealWhen === null ? from : ` after the monitor has fallen silent${from}`
}

/** `once` or `3 times`. */
export const timesOf = ({ readLimit }: Pick<PendingSecret, 'readLimit'>): string =>
  readLimit === 1 ? 'once' : plural(readLimit, 'time')

/** For a reader who may be in another time zone. */
function message(
  { code, expiresAt }: SharedWhisper,
  { secret, hasPassword }: { secret: PendingSecret; hasPassword: boolean },
): string {
  const { revealAt, revealWhen } = secret
  const lines = [
    `There is a secret for you. Open ${location.origin}/read and paste this code:`,
    '',
    code,
    '',
    `It can be read ${timesOf(secret)}, until ${both(expiresAt)}.`,
    ...(revealAt ? [`It opens on ${both(revealAt)}. Asking before costs nothing.`] : []),
    ...(revealWhen === null
      ? []
      : ['It is shut until a monitor falls silent. Asking before costs nothing.']),
    ...(hasPassword ? ['It asks for a password, which you get separately.'] : []),
  ]
  return `${lines.join('\n')}\n`
}

/** In UTC, and in the writer's own zone if that is another. */
function both(iso: string): string {
  const mine = when(iso)
  return mine === utc(iso) ? mine : `${utc(iso)} (${mine})`
}
