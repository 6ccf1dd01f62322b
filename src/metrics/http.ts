/** Metrics of the HTTP server: answers, and refusals by limit. */
import type { AnswerObserver } from '../http/server/metrics.ts'
import type { Instruments } from './instruments.ts'

export function observeResponses({ counter, histogram }: Instruments): AnswerObserver {
  const labels = ['method', 'route', 'status']
  const requests = counter('http_requests_total', 'Requests that were answered.', labels)
  const duration = histogram(
    'http_request_duration_seconds',
    'From the headers of a request to the end of its answer; streams and waits are not in it.',
    labels,
  )
  return ({ method, route, statusClass }) => {
    const count = requests.labels(method, route, statusClass)
    const durations = duration.labels(method, route, statusClass)
    return (seconds) => {
      count.inc()
      if (seconds !== null) durations.observe(seconds)
    }
  }
}

export function countRateLimited({ counter }: Instruments): (limit: string) => void {
  const refused = counter('rate_limited_total', 'Requests answered 429, by limit.', ['limit'])
  return (limit) => refused.inc({ limit })
}
