/** How an inbox stands: what is used, what it refused, and why it accepts nothing. */
import type { CatchRefusals, CatchStatus, RefusalReason } from '../../client/index.ts'
import { bytes, count, duration, plural, when } from '../lib/format.ts'
import { now } from '../lib/service.ts'
import { Button } from '../ui/button.tsx'
import { CodeBox } from '../ui/copy.tsx'
import { attempt, openDialog, toast } from '../ui/overlay.tsx'
import { Ticking } from '../ui/show.tsx'
import type { Counters } from './model.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** How much is used and when it ends; and Extend, once that is soon. */
export function Usage({ status, refusals, onExtend }: Counters & { onExtend: () => void }) {
  const { acceptedRequestCount, requestLimit, storedBytes, storageLimitBytes, expiresAt } = status
  const left = Date.parse(expiresAt) - now.value
  const warnFrom = Math.min((Date.parse(expiresAt) - Date.parse(status.createdAt)) / 10, DAY_MS)
  const isSoon = status.status === 'active' && left > 0 && left < warnFrom
  const showRefused = (): void =>
    openDialog('Refused requests', (close) => (
      <>
        <Refused refusals={refusals} />
        <div class="row">
          <Button onClick={close}>Close</Button>
        </div>
      </>
    ))
  // What it counted is deleted, and how much that was says nothing any more.
  if (status.status === 'expired') {
    return (
      <p class="inbox-used small number quiet">
        {`${plural(acceptedRequestCount, 'request')} came · ended ${when(expiresAt)}`}
      </p>
    )
  }
  return (
    <p class="inbox-used small number quiet">
      <span>{`${count(acceptedRequestCount)} of ${count(requestLimit)}`}</span> requests ·{' '}
      <span>{`${bytes(storedBytes)} of ${bytes(storageLimitBytes)}`}</span> ·{' '}
      <span title={`Ends ${when(expiresAt)}`}>
        <Ticking
          text={(at) => {
            const time = Date.parse(expiresAt) - at
            return time > 0 ? `ends in ${duration(time)}` : 'ended'
          }}
        />
      </span>
      {refusals.total > 0 && (
        <button type="button" class="link refused-link" onClick={showRefused}>
          {count(refusals.total)} refused
        </button>
      )}
      {isSoon && <Button onClick={onExtend}>Extend</Button>}
    </p>
  )
}

/** How to send a first request, or why there are none. */
export function Vacant({ ingestUrl, status, refusals }: Counters & { ingestUrl: string }) {
  const example = `curl --json '{"hello":"world"}' ${ingestUrl}/first`
  if (ended(status) !== null) {
    return (
      <section class="card stack narrow" aria-label="Requests">
        <h2>No requests are stored</h2>
        <Refused refusals={refusals} />
      </section>
    )
  }
  return (
    <section class="card stack narrow" aria-label="Requests">
      <h2>Waiting for requests</h2>
      <Refused refusals={refusals} />
      <p>Give the address above to the sender of your webhooks. Each request shows here at once.</p>
      <div class="row">
        <Button weight="primary" icon="send" onClick={() => sendTest(ingestUrl)}>
          Send a test request
        </Button>
      </div>
      <p>Or send one from a terminal:</p>
      <CodeBox text={example} label="an example" wrapped />
      <p class="small quiet">
        Text after the address is stored as the path. Requests with the ingest token as
        Authorization: Bearer are marked authenticated.
      </p>
    </section>
  )
}

/** Sends a request to the inbox, like any sender would. It counts as one. */
export async function sendTest(ingestUrl: string): Promise<void> {
  await attempt(async () => {
    const answer = await fetch(`${ingestUrl}/test`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ hello: 'world', sentFrom: 'this page' }),
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
    })
    // Its owner may have chosen another answer, and it is stored all the same.
    if (answer.status === 401) toast('The inbox refused it: it is full, suspended or has ended.')
    else if (answer.status === 429) toast('Too many requests at once. Try again in a minute.')
  })
}

/** Null if it accepts requests. */
export function ended(status: CatchStatus): string | null {
  switch (status.status) {
    case 'active':
      return status.storedBytes >= status.storageLimitBytes
        ? 'The storage is full. Delete requests to make room.'
        : null
    case 'exhausted':
      return 'No requests are left. New ones are refused.'
    case 'suspended':
      return 'Suspended by the operator. New requests are refused.'
    case 'expired':
      return 'This inbox has expired. Its requests are deleted.'
    case 'manually_destroyed':
      return 'This inbox was destroyed.'
  }
}

/** The requests that were refused, by reason. */
function Refused({ refusals }: { refusals: CatchRefusals }) {
  const { total, reasons } = refusals
  const [first] = reasons.map(({ firstAt }) => firstAt).sort()
  if (first === undefined) return null
  return (
    <div>
      <p>
        {`${plural(total, 'request')} ${total === 1 ? 'was' : 'were'} refused and not stored, since ${when(first)}:`}
      </p>
      <ul class="small">
        {reasons.map(({ reason, count: times, lastAt }) => (
          <li
            key={reason}
          >{`${count(times)} × ${REASONS[reason] ?? reason}, last ${when(lastAt)}`}</li>
        ))}
      </ul>
    </div>
  )
}

/** A newer service may have more reasons. */
const REASONS: Partial<Record<RefusalReason, string>> = {
  rate_limited: 'too many at once',
  too_large: 'body or headers too large',
  storage_full: 'storage full',
  exhausted: 'all requests of the plan were used',
  suspended: 'the inbox was suspended',
  expired: 'the inbox had expired',
  incomplete: 'the body stopped halfway',
  service_busy: 'the service was busy',
  service_unavailable: 'the service could not store it',
}
