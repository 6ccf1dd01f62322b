/** The checkout, from the order to what was bought: on a page, or in the dialog of what is extended. */
import './buying.css'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import { download } from '../lib/download.ts'
import { sats, sentence } from '../lib/format.ts'
import { isTroubled } from '../lib/service.ts'
import { isStorageBlocked } from '../lib/storage.ts'
import { THINGS, termsLine } from '../lib/terms.ts'
import { type Begun, end, recoveryText } from '../lib/unfinished.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { confirmed } from '../ui/overlay.tsx'
import {
  Failure,
  Fold,
  Notice,
  StepHeading,
  showTitle,
  Trouble,
  useGuard,
  Working,
} from '../ui/show.tsx'
import { type Buy, isExpired, isRefusal, type Phase, useOrder } from './order.ts'
import { Invoice } from './pay.tsx'
import { Price } from './plans.tsx'

export function Checkout<Bought>({
  purchase,
  buy,
  asking,
  onBought,
  onLeave,
  onRenew,
  children,
}: {
  purchase: Begun
  buy: Buy
  /** What is done before there is an invoice. */
  asking: string
  onBought?: (bought: unknown) => unknown
  /** The person wants to choose again. */
  onLeave: () => unknown
  /** Orders the same plan anew after the invoice has expired. */
  onRenew?: (() => unknown) | undefined
  children: (bought: Bought) => ComponentChildren
}) {
  const { phase, reach, run } = useOrder(purchase, buy, onBought)
  const shown = phase.value
  const isInDialog = isExtension(purchase)
  const looks = isInDialog ? 'stack' : 'card stack narrow'
  useGuard(() => phase.value.at === 'bought' && isStorageBlocked())
  useEffect(() => {
    const title = titleOf(shown, purchase)
    if (title !== null && !isInDialog) showTitle(title)
  }, [shown])

  async function leave(): Promise<void> {
    const isWanted = await confirmed('Choose another plan?', {
      body: 'If you have paid this invoice, stay: your purchase shows here within seconds.',
      action: 'Choose another',
      keep: 'Stay here',
    })
    if (!isWanted || phase.value.at !== 'invoice') return
    end(purchase)
    onLeave()
  }

  switch (shown.at) {
    case 'asking':
    case 'paid': {
      const [safe, doing] =
        shown.at === 'paid'
          ? ['Paid, and your payment is safe. ', 'Paid. Waiting for the delivery']
          : ['', asking]
      return (
        <>
          {!isInDialog && <h1 class="visually-hidden">Checkout</h1>}
          <Working>
            {isTroubled(reach.value) ? (
              <span>
                {safe}
                <Trouble reach={reach.value} />
              </span>
            ) : (
              `${doing}…`
            )}
          </Working>
        </>
      )
    }
    case 'bought':
      return <>{children(shown.bought as Bought)}</>
    case 'failed':
      return (
        <section class={looks} aria-label="Checkout">
          {!isInDialog && <p class="small quiet">{termsLine(purchase)}</p>}
          <NotBought
            purchase={purchase}
            error={shown.error}
            onAgain={() => run()}
            onRenew={onRenew}
            onLeave={onLeave}
          />
        </section>
      )
    case 'invoice':
      return (
        <section class={looks} aria-label="Checkout">
          <div class="stack tight">
            {!isInDialog && <p class="small quiet">{termsLine(purchase)}</p>}
            <StepHeading level={levelIn(purchase)}>
              Pay <Price amount={shown.quote.amountSats} />
            </StepHeading>
            {!isInDialog && <p class="small quiet">{purchase.limits.join(' · ')}</p>}
          </div>
          <Invoice quote={shown.quote} reach={reach.value} onProof={run} />
          <KeptHere purchase={purchase} />
          {!isInDialog && (
            <div class="row">
              <Button weight="quiet" onClick={leave}>
                Choose another plan
              </Button>
            </div>
          )}
        </section>
      )
  }
}

const isExtension = (purchase: Begun): boolean => purchase.extends !== undefined
/** A dialog has its title above. */
const levelIn = (purchase: Begun): 'h1' | 'h3' => (isExtension(purchase) ? 'h3' : 'h1')

function titleOf(phase: Phase, { product }: Begun): string | null {
  const { noun, an } = THINGS[product]
  if (phase.at === 'invoice') return `Pay ${sats(phase.quote.amountSats)} for ${an}`
  if (phase.at === 'bought') return `Paid: your ${noun} is ready`
  return phase.at === 'failed' ? failureTitle(phase.error) : null
}

/** Where the order is kept, and a text that collects it from anywhere. */
function KeptHere({ purchase }: { purchase: Begun }) {
  const text = (): string => recoveryText(purchase)
  const save = (): void => download('mayfly-recovery.txt', text(), 'text/plain')
  const { noun } = THINGS[purchase.product]
  const end = isExtension(purchase) ? `your ${noun} is extended` : `you have your ${noun}`
  return (
    <div class="small quiet">
      <p>
        {isStorageBlocked()
          ? 'This browser stores nothing. Keep this page open, or save the recovery text.'
          : `This browser keeps the order until ${end}, even if the tab closes.`}
      </p>
      <Fold title="Recovery text" open={isStorageBlocked()}>
        {() => (
          <div class="stack tight">
            <p>It collects this order on any device. Treat it like a key.</p>
            <div class="row">
              <CopyButton text={text}>Copy recovery text</CopyButton>
              <Button icon="download" onClick={save}>
                Download
              </Button>
            </div>
          </div>
        )}
      </Fold>
    </div>
  )
}

const TITLES: Record<string, string> = {
  'sold out': 'Sold out for today',
  'checkout unavailable': 'The checkout is closed',
  'order expired': 'Invoice expired',
  'already delivered': 'Already delivered',
  'order refunded': 'Refunded',
  'order not found': 'Order not found',
}

function failureTitle(error: unknown): string {
  const title = error instanceof MayflyError ? TITLES[error.phrase] : undefined
  return title ?? (isRefusal(error) ? 'Nothing was bought' : 'Not finished')
}

function NotBought({
  purchase,
  error,
  onAgain,
  onRenew,
  onLeave,
}: {
  purchase: Begun
  error: unknown
  onAgain: () => unknown
  onRenew: (() => unknown) | undefined
  onLeave: () => unknown
}) {
  const isOver = isExpired(error)
  // After a reload, nobody has the content of an unpaid secret.
  const elsewhere = isOver && !onRenew ? 'Write it again' : 'Choose a plan'
  return (
    <>
      <StepHeading level={levelIn(purchase)}>{failureTitle(error)}</StepHeading>
      {isRefusal(error) ? (
        <Notice kind={isOver ? undefined : 'bad'}>{sentence(error)}</Notice>
      ) : (
        <Failure error={error} weight="primary" onAgain={onAgain} />
      )}
      <div class="row">
        {isOver && onRenew && (
          <Button weight="primary" onClick={onRenew}>
            Get a new invoice
          </Button>
        )}
        <Button onClick={onLeave}>{isExtension(purchase) ? 'Back to the price' : elsewhere}</Button>
      </div>
      <p class="small quiet">
        Paid, and nothing came? <a href="/recover">Recover a payment</a>.
      </p>
    </>
  )
}
