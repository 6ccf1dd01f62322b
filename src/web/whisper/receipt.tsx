/** The page of a receipt: the state of a secret, its reads, its switch, who is alerted, and the way to destroy it. */
import './whisper.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { WhisperCapability, WhisperReceipt } from '../../client/index.ts'
import { createReceiptClient } from '../../client/whisper.ts'
import { Alerts, loadAlerts } from '../keys/alerts.tsx'
import { closedBy, KeyBar, mountOpener } from '../keys/opener.tsx'
import { stateOfSecret } from '../keys/things.tsx'
import { count, endOf, when } from '../lib/format.ts'
import { noteEnd } from '../lib/keys.ts'
import { now, service } from '../lib/service.ts'
import { Button } from '../ui/button.tsx'
import { announce, onConsent } from '../ui/overlay.tsx'
import { Failure, Meter, State, Ticking } from '../ui/show.tsx'

/** How often a page that is looked at asks again. */
const ASK_AGAIN_MS = 10_000

type Loaded = Awaited<ReturnType<typeof load>>

async function load(capability: WhisperCapability) {
  const client = createReceiptClient(service, capability)
  async function ask(): Promise<WhisperReceipt> {
    const receipt = await client.status()
    noteEnd(capability.publicId, receipt.expiresAt)
    return receipt
  }
  return { client, ask, receipt: await ask(), alerts: await loadAlerts(client) }
}

function Receipt({ loaded }: { loaded: Loaded }) {
  const { client, ask } = loaded
  const receipt = useSignal(loaded.receipt)
  const problem = useSignal<unknown>(null)
  const shown = receipt.value
  const hasEnded = shown.endedAt !== null
  const state = stateOfSecret(shown)

  /** Asks again, and says so if it fails; what is shown stays. */
  async function refresh(): Promise<void> {
    try {
      const next = await ask()
      problem.value = null
      if (next.readsSpent > receipt.value.readsSpent) announce('It was read')
      receipt.value = next
    } catch (error) {
      if (!closedBy(error)) problem.value = error
    }
  }

  useEffect(() => {
    const timer = setInterval(() => {
      if (receipt.peek().endedAt === null && !document.hidden) void refresh()
    }, ASK_AGAIN_MS)
    return () => clearInterval(timer)
  }, [])

  /** The receipt stays: it goes on answering for a day. */
  function askToDestroy(): Promise<void> {
    const body = 'Its content is deleted now, and its code stops working. No refund.'
    // Where it fails, the receipt says why: it may be over already.
    return onConsent('Destroy this secret?', { body, action: 'Destroy it' }, () =>
      client.destroy().finally(refresh),
    )
  }

  const { reads, readLimit, readsSpent, endedAt, expiresAt, revealAt } = shown
  const isShut = revealAt !== null && Date.parse(revealAt) > now.value
  return (
    <div class="stack narrow">
      <KeyBar />
      {problem.value !== null && <Failure error={problem.value} onAgain={refresh} />}
      <section class="card stack" aria-label="Receipt">
        <div class="row between">
          <h2>
            <State kind={state.kind}>{state.text}</State>
          </h2>
          <Button weight="quiet" onClick={refresh}>
            Refresh
          </Button>
        </div>
        <Meter label="Reads" used={readsSpent} limit={readLimit} show={count} />
        <p class="quiet">
          {endedAt === null ? (
            <Ticking text={(at) => `${endOf(expiresAt, at)}.`} />
          ) : (
            `Ended ${when(endedAt)}.`
          )}
          {isShut && ` Nobody can read it before ${when(revealAt)}.`}
        </p>
        {shown.switch !== null && <SwitchState bound={shown.switch} />}
        <h3>When it was read</h3>
        {reads.length === 0 ? (
          <p class="quiet">{hasEnded ? 'It was never read.' : 'Not yet.'}</p>
        ) : (
          <ol class="number" reversed tabIndex={0} aria-label="The reads, newest first">
            {reads.map((read, index) => (
              <li key={index}>{when(read)}</li>
            ))}
          </ol>
        )}
        <p class="small quiet">
          {hasEnded
            ? 'You can open this receipt for 24 hours after the end.'
            : 'Times only; readers stay anonymous. This page updates itself.'}
        </p>
        <div class="row">
          {hasEnded ? (
            <Button href="/whisper">Write another secret</Button>
          ) : (
            <Button danger icon="trash" onClick={askToDestroy}>
              Destroy the secret
            </Button>
          )}
        </div>
      </section>
      <Alerts
        alerts={client}
        initial={loaded.alerts}
        event="when the secret is read"
        hasEnded={hasEnded}
      />
    </div>
  )
}

function SwitchState({ bound }: { bound: NonNullable<WhisperReceipt['switch']> }) {
  const from = when(bound.since)
  const words = {
    waiting: `Bound ${from}, and not armed yet. The next ping of the monitor arms it.`,
    armed: `Armed since ${from}. It opens when the monitor falls silent, until ${when(bound.worksUntil)}.`,
    open: `Open since ${from}: the monitor fell silent, and the code reads the secret.`,
    dead: `Dead since ${from}: it can never open, because the monitor has ended or lost its pings.`,
  }
  const kinds = { waiting: 'waiting', armed: 'good', open: 'bad', dead: 'over' } as const
  return (
    <div class="stack tight">
      <h3>
        <State kind={kinds[bound.state]}>The switch</State>
      </h3>
      <p>{words[bound.state]}</p>
    </div>
  )
}

mountOpener({
  product: 'whisper',
  title: 'Receipts',
  load,
  children: (loaded) => <Receipt loaded={loaded} />,
})
