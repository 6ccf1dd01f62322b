/** Who is alerted of a monitor's changes or a secret's reads: up to three destinations, tests, and what was sent. */
import { useSignal } from '@preact/signals'
import { useState } from 'preact/hooks'
import type { AlertsClient } from '../../client/alerts.ts'
import { MayflyError } from '../../client/errors.ts'
import type { AlertSettings, AlertsSet, AlertsStatus } from '../../client/index.ts'
import { ALERT_FORMATS, type AlertFormat, URL_FORMATS } from '../../lib/alert-formats.ts'
import { plainly } from '../lib/foreign.ts'
import { count, reasonOf, when } from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { CodeBox } from '../ui/copy.tsx'
import { type Fields, Form, Input, Select } from '../ui/field.tsx'
import { attempt, onConsent, openDialog, toast } from '../ui/overlay.tsx'
import { Fold, Notice } from '../ui/show.tsx'

type Destination = AlertSettings['destinations'][number]
type Shown = AlertsStatus['destinations'][number] & Partial<AlertsSet['destinations'][number]>

const MOST = 3
const labelOf = (format: AlertFormat): string =>
  format === 'inbox' ? 'An inbox here' : ALERT_FORMATS[format].label
const KINDS = Object.fromEntries(
  [...URL_FORMATS, 'inbox' as const].map((format) => [format, labelOf(format)]),
) as Record<AlertFormat, string>

const STATES: Record<Shown['state'], string> = {
  untested: 'no test has reached it',
  active: 'active',
  gone: 'answered 410, so it gets no more alerts',
}
/** Of a test or a message. */
const OUTCOMES: Record<string, string> = {
  '2xx': 'arrived',
  '4xx': 'refused (4xx)',
  '5xx': 'failed there (5xx)',
  failed: 'no answer',
  'no echo': 'no echo of its nonce, which the standard format asks for',
}

/** Null where the operator sends no alerts. */
export async function loadAlerts(alerts: AlertsClient): Promise<AlertsStatus | null> {
  return alerts.alerts().catch((error: unknown) => {
    if (error instanceof MayflyError && error.phrase === 'alerts unavailable') return null
    throw error
  })
}

export function Alerts({
  alerts,
  initial,
  event,
  hasEnded = false,
}: {
  alerts: AlertsClient
  initial: AlertsStatus | null
  /** When they come: `when the monitor is late`. */
  event: string
  /** Nobody can be added any more, but what was sent is shown. */
  hasEnded?: boolean
}) {
  const status = useSignal<(AlertsStatus & { destinations: Shown[] }) | null>(initial)
  const shown = status.value
  if (shown === null) {
    return (
      <section class="card stack tight" aria-label="Alerts">
        <h2>Alerts</h2>
        <p class="quiet">The operator of this service sends no alerts.</p>
      </section>
    )
  }
  if (hasEnded && shown.destinations.length === 0) return null
  const { destinations, deliveries } = shown

  /** @param after has what is told once: the secrets, and how the tests ended. */
  async function refresh(after?: AlertsSet): Promise<void> {
    status.value = { ...(await alerts.alerts()), ...after }
  }

  async function add(destination: Destination): Promise<void> {
    const kept = destinations.map(({ id }) => ({ id }))
    await refresh(await alerts.setAlerts({ destinations: [...kept, destination] }))
    toast('Saved.')
  }

  function askToRemove({ id, host }: Shown): Promise<void> {
    const body = `${plainly(host)} gets no more alerts, and its secret is forgotten.`
    return onConsent('Remove this alert?', { body, action: 'Remove it' }, async () => {
      const kept = destinations.filter((each) => each.id !== id)
      if (kept.length === 0) await alerts.deleteAlerts()
      else await alerts.setAlerts(same(kept))
      await refresh()
    })
  }

  const open = (): void =>
    openDialog('Add an alert', (close) => <AddAlert add={add} close={close} event={event} />)
  const isUntested = destinations.some(({ state }) => state !== 'active')
  return (
    <section class="card stack" aria-label="Alerts">
      <h2>Alerts</h2>
      {destinations.length === 0 ? (
        <Notice
          kind="warn"
          action={
            <Button icon="bell" onClick={open}>
              Add an alert
            </Button>
          }
        >
          Nobody is alerted {event}.
        </Notice>
      ) : (
        <ul class="things">
          {destinations.map((each) => (
            <DestinationLine key={each.id} shown={each} onRemove={() => askToRemove(each)} />
          ))}
        </ul>
      )}
      {destinations.length > 0 && (
        <>
          <div class="row">
            {!hasEnded && destinations.length < MOST && (
              <Button icon="plus" onClick={open}>
                Add an alert
              </Button>
            )}
            {isUntested && (
              <Button
                onClick={() =>
                  attempt(async () => refresh(await alerts.setAlerts(same(destinations))))
                }
              >
                Test again
              </Button>
            )}
            <Button weight="quiet" onClick={() => attempt(() => refresh())}>
              Refresh
            </Button>
          </div>
          <Deliveries deliveries={deliveries} destinations={destinations} />
        </>
      )}
    </section>
  )
}

/** The settings of these, as they are. The service tests those that no test has reached. */
const same = (kept: readonly Shown[]) => ({ destinations: kept.map(({ id }) => ({ id })) })

function DestinationLine({ shown, onRemove }: { shown: Shown; onRemove: () => void }) {
  const { host, format, state, secret, test } = shown
  const name = plainly(host)
  return (
    <li>
      <div class="name">
        <strong>{name}</strong>
        <div class={state === 'gone' ? 'small bad' : 'small quiet'}>
          {`${labelOf(format)} · ${STATES[state]}`}
        </div>
        {test != null && <p class="small">{`The test: ${OUTCOMES[test] ?? test}.`}</p>}
      </div>
      <Button icon="trash" label={`Remove ${name}`} danger onClick={onRemove} />
      {secret != null && (
        <div class="stack tight">
          <p class="small">Its signing secret. It is shown once.</p>
          <CodeBox text={secret} label={`the secret of ${name}`} wrapped />
        </div>
      )}
    </li>
  )
}

function Deliveries({
  deliveries,
  destinations,
}: {
  deliveries: AlertsStatus['deliveries']
  destinations: Shown[]
}) {
  const hosts = new Map(destinations.map(({ id, host }) => [id, plainly(host)]))
  return (
    <Fold title={`Sent in the last 24 hours: ${count(deliveries.length)}`}>
      {() =>
        deliveries.length === 0 ? (
          <p class="quiet">Nothing yet.</p>
        ) : (
          <ol class="number small log" tabIndex={0} aria-label="Messages">
            {deliveries.map((each) => {
              const tries = each.attempts > 1 ? ` after ${count(each.attempts)} tries` : ''
              const outcome = OUTCOMES[each.outcome ?? ''] ?? each.outcome ?? 'waits'
              const next = each.nextTryAt === null ? '' : `, next try ${when(each.nextTryAt)}`
              const to = hosts.get(each.destinationId) ?? 'a removed destination'
              return (
                <li key={`${each.messageId} ${each.destinationId}`}>
                  {`${when(each.happenedAt)} · ${each.type} to ${to}: ${outcome}${tries}${next}`}
                </li>
              )
            })}
          </ol>
        )
      }
    </Fold>
  )
}

function AddAlert({
  add,
  close,
  event,
}: {
  add: (destination: Destination) => Promise<void>
  close: () => void
  event: string
}) {
  const [format, setFormat] = useState<AlertFormat>('standard')
  async function submit(field: Fields): Promise<void> {
    await add(
      format === 'inbox'
        ? { inbox: field('inbox').trim(), ingestToken: field('token').trim() }
        : { url: field('url').trim(), format },
    )
    close()
  }
  return (
    <Form
      label="Add an alert"
      action="Save and test"
      onSubmit={submit}
      explain={refusalOf}
      onCancel={close}
    >
      <p class="quiet">The service tests it now, and alerts it {event}.</p>
      <Select label="Kind" options={KINDS} chosen={format} onChoose={setFormat} />
      {format === 'inbox' ? (
        <>
          <Input label="Inbox" name="inbox" placeholder="catch_…" required />
          <Input
            label="Its ingest token"
            name="token"
            type="password"
            placeholder="catch_ingest_…"
            required
          />
        </>
      ) : (
        <Input label="Address" name="url" type="url" placeholder="https://…" required />
      )}
    </Form>
  )
}

function refusalOf(error: unknown): string {
  if (!(error instanceof MayflyError) || error.phrase !== 'invalid destinations')
    return reasonOf(error)
  return error.expected?.includes('https') === true
    ? 'Use a public https:// address.'
    : `Nothing was changed. Needed: ${plainly(String(error.expected ?? 'a public https:// address'))}.`
}
