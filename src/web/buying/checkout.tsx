/** The checkout, from the order to what was bought. */
import './buying.css'
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import type { Http } from '../../client/http.ts'
import type { PaymentQuote } from '../../client/index.ts'
import { sats, sentence } from '../lib/format.ts'
import { type Reach, watchfulService } from '../lib/service.ts'
import { BLOCKED, isStorageBlocked } from '../lib/storage.ts'
import { planTitle, THINGS, termsLine } from '../lib/terms.ts'
import { end, latest, note, recoveryText, type Unfinished } from '../lib/unfinished.ts'
import { confirmed } from '../ui/page.tsx'
import {
  Button,
  CopyButton,
  download,
  Fold,
  Notice,
  State,
  StepHeading,
  showTitle,
  useGuard,
  Working,
} from '../ui/ui.tsx'
import { Invoice } from './pay.tsx'

/** What a purchase of the SDK needs besides its terms. */
export type Steps = {
  /** The service. The card shows whether it answers. */
  http: Http
  signal: AbortSignal
  onInvoice: (quote: PaymentQuote) => void
}

type Phase<Bought> =
  | { at: 'asking' }
  | { at: 'invoice'; quote: PaymentQuote }
  | { at: 'failed'; error: unknown }
  | { at: 'bought'; bought: Bought }

const REACHED: Reach = { isReached: true, pauseSeconds: null }

export function Checkout<Bought>({
  purchase,
  buy,
  asking,
  onPaid,
  onLeave,
  onRenew,
  children,
}: {
  purchase: Unfinished
  /** Requests the order, or polls it, and resolves to what was bought. A repeat asks for the same order. */
  buy: (steps: Steps) => Promise<Bought>
  /** What is done before there is an invoice. */
  asking: string
  onPaid?: () => void
  /** The person wants to choose again. */
  onLeave: () => unknown
  /** Orders the same plan anew after the invoice has expired. */
  onRenew?: (() => unknown) | undefined
  children: (bought: Bought) => ComponentChildren
}) {
  const phase = useSignal<Phase<Bought>>({ at: 'asking' })
  const reach = useSignal(REACHED)
  const [attempts, setAttempts] = useState(0)
  const { noun, an } = THINGS[purchase.product]
  useGuard(() => phase.value.at === 'bought' && isStorageBlocked())

  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    phase.value = { at: 'asking' }
    const http = watchfulService((next) => {
      reach.value = next
    })
    function onInvoice(quote: PaymentQuote): void {
      if (signal.aborted) return
      note(purchase, { quote })
      phase.value = { at: 'invoice', quote }
      showTitle(`Pay ${sats(quote.amountSats)} for ${an}`)
    }
    buy({ http, signal, onInvoice }).then(
      (bought) => {
        if (signal.aborted) return
        note(purchase, { isPaid: true })
        onPaid?.()
        phase.value = { at: 'bought', bought }
        showTitle(`Paid: your ${noun} is ready`)
      },
      (error: unknown) => {
        if (signal.aborted) return
        if (!(error instanceof MayflyError)) reportError(error)
        if (isRefusal(error)) end(purchase)
        phase.value = { at: 'failed', error }
        showTitle(failureTitle(error))
      },
    )
    return () => stop.abort()
  }, [purchase.idempotencyKey, attempts])

  async function leave(): Promise<void> {
    const isWanted = await confirmed('Choose another plan?', {
      body: 'If you have already paid this invoice, stay: what you bought shows here within seconds.',
      action: 'Choose another',
      keep: 'Stay here',
    })
    if (!isWanted || phase.value.at !== 'invoice') return
    end(purchase)
    onLeave()
  }

  const shown = phase.value
  if (shown.at === 'asking') return <Working>{askingText(asking, reach.value)}</Working>
  if (shown.at === 'failed') {
    return (
      <Failure
        error={shown.error}
        purchase={purchase}
        onAgain={() => setAttempts(attempts + 1)}
        onRenew={onRenew}
        onLeave={onLeave}
      />
    )
  }
  if (shown.at === 'bought') return <>{children(shown.bought)}</>
  return (
    <section class="card stack narrow invoice" aria-label="Checkout">
      <div class="stack tight">
        <p class="small quiet">{termsLine(purchase)}</p>
        <StepHeading>Pay {sats(shown.quote.amountSats)}</StepHeading>
        <p class="small quiet">{purchase.limits.join(' · ')}</p>
      </div>
      <Invoice
        quote={shown.quote}
        reach={reach.value}
        onProof={(preimage) => note(purchase, { preimage })}
      />
      <KeptHere purchase={purchase} />
      <div class="row">
        <Button weight="quiet" onClick={leave}>
          Choose another plan
        </Button>
      </div>
    </section>
  )
}

/** Where the order is kept, and a text that collects it from anywhere. */
export function KeptHere({ purchase }: { purchase: Unfinished }) {
  const { noun } = THINGS[purchase.product]
  const text = (): string => recoveryText(latest(purchase))
  return (
    <div class="small quiet">
      <p>
        {isStorageBlocked()
          ? 'This browser stores nothing. Keep this page open, or save the recovery text.'
          : `This browser keeps the order until you have your ${noun}, even if the tab closes.`}
      </p>
      <Fold title="Recovery text" open={isStorageBlocked()}>
        {() => (
          <div class="stack tight">
            <p>It collects this order on any device. Treat it like a key.</p>
            <div class="row">
              <CopyButton text={text}>Copy recovery text</CopyButton>
              <Button
                icon="download"
                onClick={() => download('mayfly-recovery.txt', text(), 'text/plain')}
              >
                Download
              </Button>
            </div>
          </div>
        )}
      </Fold>
    </div>
  )
}

const askingText = (asking: string, { isReached, pauseSeconds }: Reach): string => {
  if (pauseSeconds !== null) return `Too many requests. Trying again in ${pauseSeconds} s…`
  return isReached ? `${asking}…` : 'The service does not answer. Trying again…'
}

/** After these errors the order may still be paid or delivered, so its key must be kept. */
const UNDECIDED = ['service unreachable', 'unexpected answer', 'paid but not collected']

const TITLES: Record<string, string> = {
  'order expired': 'Invoice expired',
  'already delivered': 'Already handed out',
  'order refunded': 'Paid back',
  'order not found': 'Order not found',
}

/** Whether the service has refused this order for good. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof MayflyError)) return false
  return error.status < 500 && error.status !== 429 && !UNDECIDED.includes(error.phrase)
}

export function failureTitle(error: unknown): string {
  if (!isRefusal(error)) return 'Not finished'
  return TITLES[(error as MayflyError).phrase] ?? 'Nothing was bought'
}

function Failure({
  error,
  purchase,
  onAgain,
  onRenew,
  onLeave,
}: {
  error: unknown
  purchase: Unfinished
  onAgain: () => unknown
  onRenew: (() => unknown) | undefined
  onLeave: () => unknown
}) {
  const isExpired = error instanceof MayflyError && error.phrase === 'order expired'
  return (
    <section class="card stack narrow" aria-label="Checkout">
      <div class="stack tight">
        <p class="small quiet">{termsLine(purchase)}</p>
        <StepHeading>{failureTitle(error)}</StepHeading>
      </div>
      {isExpired ? (
        <Notice>{sentence(error)}</Notice>
      ) : (
        <Notice kind="bad">{sentence(error)}</Notice>
      )}
      <div class="row">
        {!isRefusal(error) && (
          <Button weight="primary" onClick={onAgain}>
            Ask again for the same order
          </Button>
        )}
        {isExpired && onRenew && (
          <Button weight="primary" onClick={onRenew}>
            Get a new invoice
          </Button>
        )}
        <Button onClick={onLeave}>Choose a plan</Button>
      </div>
      {isRefusal(error) && (
        <p class="small quiet">
          Paid, and nothing came? <a href="/recover">Recover a payment</a>.
        </p>
      )}
    </section>
  )
}

/** A plan as a card, with its price and limits, or why it cannot be bought. */
export function PlanCard({
  purchase: { planId, lifetime, limits, priceSats },
  bestFor,
  refusal,
  isAvailable,
  isWanted = false,
  onChoose,
}: {
  purchase: Pick<Unfinished, 'planId' | 'lifetime' | 'limits' | 'priceSats'>
  bestFor: string
  refusal: string | null
  isAvailable: boolean
  isWanted?: boolean
  onChoose: () => unknown
}) {
  const why = isAvailable ? refusal : 'Not on sale.'
  return (
    <button
      type="button"
      class="plan"
      data-plan={planId}
      aria-current={isWanted ? 'true' : undefined}
      disabled={why !== null}
      onClick={onChoose}
    >
      <span class="plan-name">
        {planTitle(planId)} · {lifetime}
      </span>
      <span class="plan-price">{sats(priceSats)}</span>
      <span class="small quiet">{bestFor}</span>
      {why === null ? (
        limits.map((limit) => (
          <span class="plan-limit" key={limit}>
            {limit}
          </span>
        ))
      ) : (
        <span class="plan-limit why">{why}</span>
      )}
    </button>
  )
}

export function StorageNotice() {
  return isStorageBlocked() ? <Notice kind="warn">{BLOCKED}</Notice> : null
}

/** The mark above what was paid. */
export function Paid() {
  return (
    <p>
      <State kind="good">Paid</State>
    </p>
  )
}
