/** Says which webhooks an inbox refuses while somebody listens: none of them ever arrives. */
import type { CatchRefusals, RefusalReason } from '../../client/index.ts'

/** A burst is asked about when the service has counted it, and everything else in turns. */
const AFTER_EVENT_MS = 2_000
const EVERY_MS = 30_000

/** Asks at once, to know what is old. @param tell gets a sentence for each reason with new refusals. */
export function watchRefusals(
  ask: (signal: AbortSignal) => Promise<CatchRefusals>,
  tell: (sentence: string) => void,
  { afterEventMs = AFTER_EVENT_MS, everyMs = EVERY_MS } = {},
) {
  const over = new AbortController()
  let known: Map<string, number> | null = null
  let timer: NodeJS.Timeout | undefined
  let isSoon = false

  function askIn(ms: number): void {
    clearTimeout(timer)
    if (!over.signal.aborted) timer = setTimeout(look, ms)
  }

  async function look(): Promise<void> {
    isSoon = false
    try {
      const { reasons } = await ask(over.signal)
      if (over.signal.aborted) return
      const before = known
      known = new Map(reasons.map(({ reason, count }) => [reason, count]))
      for (const { reason, count } of before === null ? [] : reasons) {
        const more = count - (before?.get(reason) ?? 0)
        if (more > 0) tell(sentenceOf(reason, more))
      }
    } catch {
      // The stream says when the connection is lost. What was not told is told at the next turn.
    }
    if (!isSoon) askIn(everyMs)
  }

  void look()
  return {
    /** An event came, maybe the first one of a burst. */
    arrived(): void {
      if (isSoon) return
      isSoon = true
      askIn(afterEventMs)
    },
    stop(): void {
      over.abort()
      clearTimeout(timer)
    },
  }
}

function sentenceOf(reason: RefusalReason, count: number): string {
  const were = count === 1 ? '1 webhook was' : `${count} webhooks were`
  const why = BECAUSE[reason] ?? String(reason)
  return `${were} refused and not kept: ${why}.`
}

const BECAUSE: Record<RefusalReason, string> = {
  rate_limited:
    'they came faster than the rate of the plan (429; docs/run/limits.md). A sender that tries again gets through',
  too_large: 'larger than the plan takes, or with more than 256 headers',
  storage_full: 'the storage of the plan is full. `mayfly catch delete` makes room',
  exhausted: 'all requests of the plan are used. `mayfly extend` adds more',
  suspended: 'the operator has suspended the inbox',
  expired: 'the inbox has expired',
  incomplete: 'the body stopped half-way',
  service_busy: 'the service was busy. A sender that tries again gets through',
  service_unavailable: 'the service could not store it',
}
