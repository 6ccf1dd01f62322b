/** How many requests came when: a bar for each minute, hour or day. A press on one shows its requests. */
import { count, plural, time, when } from '../lib/format.ts'
import { now } from '../lib/service.ts'
import type { Span } from './events.ts'
import type { Inbox } from './model.ts'

const MINUTE = 60_000
const SIZES = [
  { name: 'minute', ms: MINUTE },
  { name: 'hour', ms: 60 * MINUTE },
  { name: 'day', ms: 24 * 60 * MINUTE },
] as const
const MAX_BARS = 60
const MIN_BARS = 30

export function Activity({ inbox: { events, counters } }: { inbox: Inbox }) {
  const span = events.span.value
  function choose(chosen: Span | null): void {
    events.span.value = chosen
  }
  const times = events.loaded.value.map(({ receivedAt }) => Date.parse(receivedAt))
  const refused = counters.value.refusals.reasons.map((each) => ({
    at: Date.parse(each.lastAt),
    count: each.count,
  }))
  const oldest = Math.min(...times.slice(-1), ...refused.map(({ at }) => at))
  if (!Number.isFinite(oldest)) return null
  const end = now.value
  const size = SIZES.find(({ ms }) => (end - oldest) / ms < MAX_BARS) ?? SIZES[2]
  const last = Math.floor(end / size.ms)
  const spanned = last - Math.floor(oldest / size.ms) + 1
  const first = last + 1 - Math.min(MAX_BARS, Math.max(MIN_BARS, spanned))
  const bars = Array.from({ length: last - first + 1 }, (_, index) => {
    const from = (first + index) * size.ms
    return { from, to: from + size.ms, count: 0, refused: 0 }
  })
  const barOf = (at: number) => bars[Math.floor(at / size.ms) - first]
  for (const at of times) {
    const bar = barOf(at)
    if (bar) bar.count++
  }
  for (const { at, count } of refused) {
    const bar = barOf(at)
    if (bar) bar.refused += count
  }
  const most = Math.max(
    1,
    ...bars.map(({ count, refused }) => count + Math.min(refused, count + 1)),
  )
  const label = (at: number): string =>
    size.name === 'day' ? (when(iso(at)).split(',')[0] ?? '') : time(iso(at)).slice(0, 5)
  return (
    <section class="activity" aria-label="Activity">
      <div class="bars">
        {bars.map((bar) => (
          <button
            key={bar.from}
            type="button"
            class="bar"
            // No stops for the keyboard: the search and the way to a time do the same.
            tabIndex={-1}
            aria-pressed={span?.from === bar.from}
            aria-label={`${label(bar.from)}: ${plural(bar.count, 'request')}${bar.refused > 0 ? `, ${count(bar.refused)} refused` : ''}`}
            title={`${label(bar.from)}: ${plural(bar.count, 'request')}`}
            disabled={bar.count === 0}
            onClick={() => choose(span?.from === bar.from ? null : { from: bar.from, to: bar.to })}
          >
            {bar.refused > 0 && (
              <span
                class="refused"
                style={{ height: `${share(Math.min(bar.refused, bar.count + 1), most)}%` }}
              />
            )}
            <span class="accepted" style={{ height: `${share(bar.count, most)}%` }} />
          </button>
        ))}
      </div>
      <p class="small quiet number">
        <span>{`Per ${size.name}${events.hasOlder.value ? `, of the ${count(times.length)} loaded` : ''}`}</span>
        {span !== null && (
          <button type="button" class="link" onClick={() => choose(null)}>
            {`Only ${label(span.from)}. Show all`}
          </button>
        )}
      </p>
    </section>
  )
}

const share = (part: number, whole: number): number =>
  part === 0 ? 0 : Math.max(8, (part / whole) * 100)
const iso = (at: number): string => new Date(at).toISOString()
