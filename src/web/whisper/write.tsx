/** The page that writes a secret: it encrypts the content, buys the whisper and shows the share code. */
import './whisper.css'
import { useEffect, useRef, useState } from 'preact/hooks'
import { createWhisperClient, sealWhisper, sharedWhisper } from '../../client/whisper.ts'
import { base64url } from '../../lib/bytes.ts'
import type { SealedWhisper } from '../../protocol/whisper-envelope.ts'
import { Checkout } from '../buying/checkout.tsx'
import type { Buy } from '../buying/order.ts'
import { Others } from '../buying/others.tsx'
import { Plans } from '../buying/plans.tsx'
import { plural } from '../lib/format.ts'
import { now, service } from '../lib/service.ts'
import type { Terms } from '../lib/terms.ts'
import {
  type Begun,
  begin,
  end,
  type Opening,
  ofThisTab,
  type PendingSecret,
  type Unfinished,
  unfinished,
} from '../lib/unfinished.ts'
import { mount, toast } from '../ui/overlay.tsx'
import { Notice, showTitle, useGuard, Working } from '../ui/show.tsx'
import {
  clearDraft,
  contentIn,
  draft,
  largestContent,
  refusalOf,
  revealAtIn,
  sizeIn,
  upTo,
  type WhisperPlan,
} from './draft.ts'
import { DraftForm } from './draft-form.tsx'
import { Share, timesOf } from './share.tsx'

type Order = {
  purchase: Begun & { secret: PendingSecret }
  opening: Opening
  /** The encrypted bytes. Null after a reload, when the service alone has them. */
  sealed: SealedWhisper | null
  /** The password, if this page knows it. */
  password: string | null
}

type SecretPurchase = Unfinished & Order['purchase'] & { record: { whisper: Opening } }
const isSecret = (each: Unfinished): each is SecretPurchase => each.product === 'whisper'

/** Goes on with an order whose bytes the service has. */
const goOnWith = (purchase: SecretPurchase): Order => ({
  purchase,
  opening: purchase.record.whisper,
  sealed: null,
  password: purchase.secret.suggested,
})

/** The purchase of this tab that a reload interrupted, found once, when the page begins. */
const interrupted = ofThisTab().find(isSecret)

function Page() {
  const [order, setOrder] = useState<Order | null>(interrupted ? goOnWith(interrupted) : null)
  const [isSealing, setSealing] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  // The content is stored nowhere, so leaving the page would lose it.
  useGuard(() => order === null && sizeIn(draft.value) !== null)

  useEffect(() => {
    if (order === null) showTitle('Write a secret')
  }, [order === null])

  async function seal(offered: Terms): Promise<void> {
    if (!form.current?.reportValidity()) return
    const now = draft.value
    setSealing(true)
    try {
      const content = await contentIn(now)
      const sealed = await sealWhisper(content)
      const readLimit = Number(now.reads)
      const switchId = now.switchId.trim()
      const secret: PendingSecret = {
        suggested: now.password !== '' && now.password === now.suggested ? now.suggested : null,
        readLimit,
        revealAt: revealAtIn(now)?.toISOString() ?? null,
        receipt: now.receipt || switchId !== '',
        revealWhen: switchId === '' ? null : switchId,
      }
      setOrder({
        purchase: begin({ ...offered, limits: [`can be read ${timesOf(secret)}`], secret }),
        opening: { key: base64url(sealed.key), hasPassword: sealed.hasPassword },
        sealed,
        password: now.password === '' ? null : now.password,
      })
    } catch (error) {
      reportError(error)
      toast('The file could not be read: it may have changed or gone. Nothing was sent.')
    }
    setSealing(false)
  }

  if (order) {
    const { purchase, opening, sealed, password } = order
    function another(): void {
      end(purchase)
      clearDraft()
      setOrder(null)
    }
    return (
      <Checkout
        key={purchase.idempotencyKey}
        purchase={purchase}
        buy={buy(order)}
        asking="Sending the encrypted bytes, and asking for an invoice"
        onBought={clearDraft}
        onLeave={() => setOrder(null)}
        onRenew={sealed ? () => setOrder({ ...order, purchase: begin(purchase) }) : undefined}
      >
        {(bought) => (
          <Share
            whisper={sharedWhisper(bought, opening)}
            purchase={purchase}
            hasPassword={opening.hasPassword}
            password={password}
            onTaken={() => end(purchase)}
            onAnother={another}
          />
        )}
      </Checkout>
    )
  }
  if (isSealing) return <Working>Encrypting in this page…</Working>
  return (
    <div class="stack loose">
      <div class="stack tight">
        <h1>Write a secret</h1>
        <p class="quiet">
          Only the people with your code can read it. Got a code? <a href="/read">Read a secret</a>.
          Kept a receipt? <a href="/receipt">See when it was read</a>.
        </p>
      </div>
      <Others
        list={unfinished.value.filter(isSecret)}
        onOpen={(purchase) => setOrder(goOnWith(purchase))}
      />
      <DraftForm form={form} />
      <section class="stack" aria-label="Lifetime">
        <h2>Choose a lifetime</h2>
        <Plans product="whisper" refusalOf={refusal} limitsOf={limits} onChoose={seal} />
      </section>
    </div>
  )
}

const refusal = (plan: WhisperPlan): string | null => refusalOf(plan, draft.value, now.value)

function limits({ plan }: { plan: WhisperPlan }): string[] {
  const largest = largestContent(plan.maxCiphertextBytes, { hasPassword: false })
  return [`up to ${upTo(largest)}`, `up to ${plural(plan.readLimit, 'read')}`]
}

/** What the service is asked for: the bytes are sent once. */
const buy =
  ({ purchase, sealed }: Order): Buy =>
  (payments, terms) => {
    const { readLimit, revealAt, receipt, revealWhen } = purchase.secret
    if (sealed === null) throw new Error('neither bytes nor an order')
    return createWhisperClient(service, payments).buyWhisper({
      ...terms,
      sealed,
      readLimit,
      receipt,
      ...(revealAt === null ? {} : { revealAt: new Date(revealAt) }),
      ...(revealWhen === null ? {} : { revealWhen }),
    })
  }

if (globalThis.isSecureContext) mount(<Page />)
else
  mount(
    <Notice kind="bad">Browsers encrypt on HTTPS pages alone. Open this page over HTTPS.</Notice>,
  )
