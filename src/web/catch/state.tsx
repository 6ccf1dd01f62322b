/** Why an inbox accepts nothing, and what it refused. */
import type { CatchRefusals, CatchStatus, RefusalReason } from '../../client/index.ts'
import { bytes, count, plural, when } from '../lib/format.ts'

/** Null if it accepts requests. */
export function ended(status: CatchStatus): string | null {
  switch (status.status) {
    case 'active':
      return status.storedBytes >= status.storageLimitBytes
        ? 'The storage is full. Delete requests to make room.'
        : null
    case 'exhausted':
      return `All ${count(status.requestLimit)} requests are used. New ones are refused.`
    case 'suspended':
      return 'Suspended by the operator. New requests are refused.'
    case 'expired':
      return 'This inbox has expired. Its requests are deleted.'
    case 'manually_destroyed':
      return 'This inbox was destroyed.'
  }
}

/** The requests that were refused, by reason. */
export function Refused({ refusals, status }: { refusals: CatchRefusals; status: CatchStatus }) {
  const { total, reasons } = refusals
  const [first] = reasons.map(({ firstAt }) => firstAt).sort()
  if (first === undefined) return null
  return (
    <div>
      <p>
        {`${plural(total, 'request')} ${total === 1 ? 'was' : 'were'} refused and not kept, since ${when(first)}:`}
      </p>
      <ul class="small">
        {reasons.map(({ reason, count: times, lastAt }) => (
          <li
            key={reason}
          >{`${count(times)} × ${becauseOf(reason, status)}, last ${when(lastAt)}`}</li>
        ))}
      </ul>
    </div>
  )
}

function becauseOf(reason: RefusalReason, { maxBytesPerRequest }: CatchStatus): string {
  switch (reason) {
    case 'rate_limited':
      return 'too many at once'
    case 'too_large':
      return `too large (up to ${bytes(maxBytesPerRequest)} and 256 headers are accepted)`
    case 'storage_full':
      return 'storage full'
    case 'exhausted':
      return 'all requests of the plan were used'
    case 'suspended':
      return 'the inbox was suspended'
    case 'expired':
      return 'the inbox had expired'
    case 'incomplete':
      return 'the body stopped halfway'
    case 'service_busy':
      return 'the service was busy'
    case 'service_unavailable':
      return 'the service could not store it'
    default:
      // A newer service may have more reasons.
      return String(reason)
  }
}
