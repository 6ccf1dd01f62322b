/**
 * `pulse.late` and `pulse.recovered`. A monitor is late or not since a time, which is the cursor; its late spells
 * tell what came after it. So any instance goes on where another stopped, and both names share their cursors.
 */
import { rfc3339 } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import type { EventName } from '../mcp-tools/events.ts'
import { bearer, type Call, expectJson, idIn, text } from './call.ts'
import { Ended, type EventSource, type Found, InvalidCursor, type Placed } from './event-source.ts'

/** Spells of one page, the most that the history gives. */
const PAGE_SPELLS = 200
/** A subscription that is further behind goes on from now. */
const MAX_PAGES = 5
/** No instance's clock is so far ahead. */
const DAY_MS = 24 * 60 * 60 * 1000

/** Whether the monitor is late, and since when it is or is not. Unix milliseconds. */
type Place = { isLate: boolean; since: number }
type Standing = Place & {
  state: string
  expiresAt: number
  hasFailed: boolean
}
type Spell = { lateAt: number; endedAt: number | null; cause: string }
/** The beginning or the end of a spell. */
type Turn = { isLate: boolean; at: number; spell: Spell }

export const createMonitorEvents = (
  name: Exclude<EventName, 'catch.received'>,
  { now }: { now: () => number },
): EventSource => ({
  async start(call) {
    return cursorOf(openOf(await standing(call, '')))
  },

  async after(call, { cursor, limit, waitSeconds }) {
    const known = placeOf(cursor)
    if (!known || known.since > now() + DAY_MS) throw new InvalidCursor()
    const since = `?wait=${waitSeconds}&since=${rfc3339(known.since)}`
    const current = await standing(call, waitSeconds > 0 ? since : '')
    const isSame = current.isLate === known.isLate && current.since === known.since
    if (isSame) return { ...nothing(cursor), isClosed: openOf(current).state === 'exhausted' }
    // Read after the state, so that it has all that led to it.
    const spells = await spellsSince(call, known.since)
    if (!spells) return { ...nothing(cursorOf(openOf(current))), isTruncated: true }
    const turns = turnsAfter(known, spells, current)
    const withdrawn = known.isLate && !spells.some(({ lateAt }) => lateAt === known.since)
    if (withdrawn) turns.unshift(withdrawal(known, now()))
    const placed: Placed[] = []
    let place: Place = known
    let taken = 0
    for (; taken < turns.length && placed.length < limit; taken++) {
      const turn = turns[taken] as Turn
      place = { isLate: turn.isLate, since: turn.at }
      if (turn.isLate === (name === 'pulse.late')) {
        placed.push({ event: occurrence(name, call, turn), cursor: cursorOf(place) })
      }
    }
    const hasMore = taken < turns.length
    // What is left of a life that is over is told before its end.
    if (turns.length === 0) openOf(current)
    const isReached = !hasMore && place.isLate === current.isLate && place.since <= current.since
    return { ...nothing(cursorOf(isReached ? current : place)), placed, hasMore }
  },
})

const nothing = (cursor: string): Found => ({
  ...{ placed: [], cursor, isTruncated: false, hasMore: false, isClosed: false },
})

const cursorOf = ({ isLate, since }: Place): string => `${isLate ? 'late' : 'fine'}.${since}`

function placeOf(cursor: string): Place | null {
  const [, state, since] = /^(late|fine)\.(0|[1-9]\d{0,14})$/.exec(cursor) ?? []
  return since === undefined ? null : { isLate: state === 'late', since: Number(since) }
}

async function standing(call: Call, query: string): Promise<Standing> {
  const status = expectJson(
    await call.ask({
      method: 'GET',
      path: `/api/pulse/${idIn(call)}${query}`,
      headers: bearer(call),
    }),
  )
  const state = text(status.state)
  return {
    state,
    isLate: state === 'late',
    since: Date.parse(text(status.stateChangedAt)),
    expiresAt: Date.parse(text(status.expiresAt)),
    hasFailed: status.failure !== null,
  }
}

/** @throws Ended */
function openOf(current: Standing): Standing {
  if (current.state === 'expired') throw new Ended('The monitor is expired.')
  return current
}

/** The late spells that began at a time or later, oldest first, or null if there are too many. */
async function spellsSince(call: Call, since: number): Promise<Spell[] | null> {
  const spells: Spell[] = []
  let cursor = ''
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = expectJson(
      await call.ask({
        method: 'GET',
        path: `/api/pulse/${idIn(call)}/history?type=late&limit=${PAGE_SPELLS}${cursor}`,
        headers: bearer(call),
      }),
    )
    const entries = Array.isArray(answer.entries) ? answer.entries.filter(isObject) : []
    for (const { at, endedAt, cause } of entries) {
      const lateAt = Date.parse(text(at))
      if (lateAt < since) return spells
      const end = endedAt === null ? null : Date.parse(text(endedAt))
      spells.unshift({ lateAt, endedAt: end, cause: text(cause) })
    }
    if (typeof answer.nextCursor !== 'string') return spells
    cursor = `&cursor=${answer.nextCursor}`
  }
  return null
}

function turnsAfter(known: Place, spells: Spell[], current: Standing): Turn[] {
  return spells.flatMap((spell, i) => {
    const { lateAt, endedAt } = spell
    const isKnown = known.isLate && lateAt === known.since
    const begins: Turn[] = isKnown ? [] : [{ isLate: true, at: lateAt, spell }]
    const isOver = i < spells.length - 1 || !isLeftLate(spell, current)
    if (endedAt === null || !isOver) return begins
    return [...begins, { isLate: false, at: endedAt, spell }]
  })
}

/** The end of a monitor ends its last spell, which is no recovery. */
const isLeftLate = ({ endedAt }: Spell, { state, hasFailed, expiresAt }: Standing): boolean =>
  (state === 'expired' || state === 'exhausted') && (hasFailed || endedAt === expiresAt)

/** A lateness that the service took back, because it learned that it could not receive pings. */
const withdrawal = ({ since }: Place, at: number): Turn => ({
  ...{ isLate: false, at },
  spell: { lateAt: since, endedAt: at, cause: 'silence' },
})

function occurrence(
  name: EventName,
  { arguments: { publicId } }: Call,
  { isLate, at, spell }: Turn,
): Placed['event'] {
  const { lateAt, cause } = spell
  return {
    // A spell has one beginning and one end.
    eventId: `${text(publicId)}.${isLate ? 'late' : 'recovered'}.${lateAt}`,
    ...{ name, timestamp: rfc3339(at) },
    data: {
      ...{ publicId, lateAt: rfc3339(lateAt), cause },
      ...(isLate ? {} : { recoveredAt: rfc3339(at) }),
    },
  }
}
