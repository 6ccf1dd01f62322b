/**
 * Destinations and the alerts that wait for them. What is due is in the row of the destination, so that a claim,
 * an attempt's end and a new alert change one row each, and none misses what another one wrote.
 */
import { type Db, insertRow, limitedTo, places, type Row, type Statement } from '../db/db.ts'
import type { AlertContent, AlertFormat } from '../lib/alert-formats.ts'

/** More alerts than this wait for no destination. The oldest give way. */
export const MAX_WAITING = 20

export type DestinationState = 'untested' | 'active' | 'gone'
export type Outcome = '2xx' | '4xx' | '5xx' | 'failed'

export type DestinationRow = {
  destination_id: string
  owner_id: string
  place: number
  format: AlertFormat
  host: string
  sealed_target: Uint8Array
  sealed_secret: Uint8Array
  state: DestinationState
  last_position: number
  done_position: number
  attempts: number
  due_at: number | null
  not_before: number
  day_started_at: number
  day_count: number
  /** 1: it gets what an alert has for its owner alone, too. */
  is_private: number
} & Row

export type AlertRow = {
  destination_id: string
  position: number
  message_id: string
  type: string
  occurred_at: number
  replaces: number
  content: string
  attempts: number
  attempted_at: number | null
  outcome: Outcome | null
  done_at: number | null
  not_before: number
} & Row

/** What happened, in the words of the product that notifies of it. No id or token that opens anything. */
export type Alert = {
  /** Such as `pulse.late`. */
  type: string
  /** Unix milliseconds. */
  occurredAt: number
  /** Whether an earlier alert that still waits says nothing beside this one: states do, warnings do not. */
  replaces: boolean
  content: AlertContent
  /** The content for destinations whose owner asked for what is not for everybody. Default: the same. */
  privateContent?: AlertContent
  /** Some minutes ahead at most: it is sent no earlier, because its time would betray something. */
  notBefore?: number
  /**
   * Numbers that only the store knows in the unit of what happened. `{{name}}` in the content stands for the value of
   * this SQL, in which $1 is the id of the owner. Such a content has no text of a stranger.
   */
  counts?: Readonly<Record<string, string>>
}

export const contentOf = ({ content }: AlertRow): AlertContent => JSON.parse(content)

/**
 * An alert for each tested destination of an owner; none if it has none. For the unit of what happened. One whose
 * test another instance stores in between is not due, and is told of the next change.
 */
export function insertAlert(ownerId: string, messageId: string, alert: Alert): Statement[] {
  const { type, occurredAt, replaces, content, notBefore = occurredAt, counts = {} } = alert
  const { privateContent = content } = alert
  return [
    {
      text: `update alert_destination
        set last_position = last_position + 1,
            due_at = case when due_at is not null then due_at
              when not_before > $2 then not_before else $2 end
        where owner_id = $1 and state = 'active'`,
      values: [ownerId, notBefore],
    },
    {
      text: `insert into alert
        (destination_id, position, message_id, type, occurred_at, replaces, content, attempts,
         not_before)
        select destination_id, last_position, $2, $3, $4, $5, case when is_private = 1
          then cast($8 as text) else ${filled('cast($6 as text)', counts)} end, 0, $7
        from alert_destination where owner_id = $1 and state = 'active' and due_at is not null`,
      values: [
        ownerId,
        messageId,
        type,
        occurredAt,
        Number(replaces),
        JSON.stringify(content),
        notBefore,
        JSON.stringify(privateContent),
      ],
    },
    notBefore > occurredAt && replaces ? dropLastButOne(ownerId) : dropOldest(ownerId),
  ]
}

/** SQL of a text in which each `{{name}}` is its number, also where the name is a text of its own in JSON. */
const filled = (text: string, counts: Readonly<Record<string, string>>): string =>
  Object.entries(counts).reduce((inside, [name, sql]) => {
    const number = `cast((${sql}) as text)`
    return `replace(replace(${inside}, '"{{${name}}}"', ${number}), '{{${name}}}', ${number})`
  }, text)

const dropOldest = (ownerId: string): Statement => ({
  text: `delete from alert where done_at is null
    and destination_id in (select destination_id from alert_destination where owner_id = $1)
    and position <= (select d.last_position - ${MAX_WAITING} from alert_destination d
      where d.destination_id = alert.destination_id)`,
  values: [ownerId],
})

/**
 * Of many that wait for their time, the oldest must not give way: its time would never come. The newest state takes
 * the place of the one before it.
 */
const dropLastButOne = (ownerId: string): Statement => ({
  text: `delete from alert where done_at is null and replaces = 1
    and destination_id in (select destination_id from alert_destination where owner_id = $1)
    and position = (select d.last_position - 1 from alert_destination d
      where d.destination_id = alert.destination_id)
    and (select count(*) from alert a
      where a.destination_id = alert.destination_id and a.done_at is null) > ${MAX_WAITING}`,
  values: [ownerId],
})

/**
 * Deletes the destinations of these owners, and what waits for them. For the unit that deletes the owners. Locks
 * the destinations first: another instance may be telling them something.
 */
export function dropOwners(ownerIds: readonly string[]): Statement[] {
  if (ownerIds.length === 0) return []
  const list = places(ownerIds)
  return [
    {
      text: `update alert_destination set place = place where owner_id in (${list})`,
      values: [...ownerIds],
    },
    {
      text: `delete from alert where destination_id in
        (select destination_id from alert_destination where owner_id in (${list}))`,
      values: [...ownerIds],
    },
    { text: `delete from alert_destination where owner_id in (${list})`, values: [...ownerIds] },
  ]
}

/** Deletes one destination, and then what waits for it, also what another instance has just told it. */
export const dropDestination = (destinationId: string): Statement[] => [
  {
    text: 'delete from alert_destination where destination_id = $1',
    values: [destinationId],
    expect: 1,
  },
  { text: 'delete from alert where destination_id = $1', values: [destinationId] },
]

export type NewDestination = Pick<
  DestinationRow,
  | 'destination_id'
  | 'owner_id'
  | 'place'
  | 'format'
  | 'host'
  | 'sealed_target'
  | 'sealed_secret'
  | 'is_private'
>

/** A destination that is told nothing before its test. Refused if its place was taken meanwhile. */
export const insertDestination = (one: NewDestination): Statement =>
  insertRow(
    'alert_destination',
    {
      ...one,
      state: 'untested',
      last_position: 0,
      done_position: 0,
      attempts: 0,
      not_before: 0,
      day_started_at: 0,
      day_count: 0,
    },
    'on conflict (owner_id, place) do nothing',
  )

/** A destination that stays, with its secret and what waits for it. Refused if it is gone. */
export const keepDestination = (destinationId: string, isPrivate: boolean): Statement => ({
  text: 'update alert_destination set is_private = $2 where destination_id = $1',
  values: [destinationId, Number(isPrivate)],
  expect: 1,
})

/** A test was answered: the destination is told of what happens from now on. */
export const activate = (destinationId: string): Statement => ({
  text: `update alert_destination set state = 'active' where destination_id = $1 and state = 'untested'`,
  values: [destinationId],
})

/**
 * Claims a destination whose turn it is, so that one instance at a time tries it: it is due again when the claim is
 * over, unless the attempt has ended before.
 */
export const claimDestination = (
  destinationId: string,
  claim: { now: number; until: number },
): Statement => ({
  text: `update alert_destination set due_at = $2
    where destination_id = $1 and due_at <= $3 returning *`,
  values: [destinationId, claim.until, claim.now],
})

/** The end of an attempt. Its claim may be over, and another one's be there: then it changes nothing. */
export const releaseDestination = (
  { destination_id, due_at }: DestinationRow,
  next: Pick<
    DestinationRow,
    'done_position' | 'attempts' | 'state' | 'not_before' | 'day_started_at' | 'day_count'
  > & {
    /** When the next alert may be tried, if one waits. */
    nextAt: number
  },
): Statement => ({
  text: `update alert_destination
    set done_position = $3, attempts = $4, not_before = $5,
        day_started_at = $6, day_count = $7, state = $8,
        due_at = case when $8 = 'active' and last_position > $3 then $9 else null end
    where destination_id = $1 and due_at = $2`,
  values: [
    destination_id,
    due_at,
    next.done_position,
    next.attempts,
    next.not_before,
    next.day_started_at,
    next.day_count,
    next.state,
    next.nextAt,
  ],
  expect: 1,
})

/** Notes an attempt. @param attempt.doneAt if it was the last one. */
export const noteAttempt = (
  { destination_id, position }: AlertRow,
  attempt: { at: number; outcome: Outcome; doneAt: number | null },
): Statement => ({
  text: `update alert set attempts = attempts + 1, attempted_at = $3, outcome = $4, done_at = $5
    where destination_id = $1 and position = $2`,
  values: [destination_id, position, attempt.at, attempt.outcome, attempt.doneAt],
})

export const dropAlerts = (destinationId: string, positions: readonly number[]): Statement[] =>
  positions.map((position) => ({
    text: 'delete from alert where destination_id = $1 and position = $2',
    values: [destinationId, position],
  }))

/** Deletes all that waits for a destination. */
export const dropWaiting = (destinationId: string): Statement => ({
  text: 'delete from alert where destination_id = $1 and done_at is null',
  values: [destinationId],
})

/** Deletes at most `most` alerts that ended before a time. */
export const purgeAlerts = (endedBefore: number, most: number): Statement => ({
  text: `delete from alert where (destination_id, position) in (
      select destination_id, position from alert where done_at <= $1 ${limitedTo(2)})
    returning position`,
  values: [endedBefore, most],
})

/** An alert, and when it is tried next: the first one that waits at a destination is, and the others after it. */
export type ToldRow = AlertRow & { next_at: number | null }

/** What the choice of a turn needs to know of a destination. */
export type DueRow = Pick<DestinationRow, 'destination_id' | 'owner_id' | 'host' | 'attempts'> & Row

export function createAlertStore(db: Db) {
  return {
    ofOwner: (ownerId: string): Promise<DestinationRow[]> =>
      db.read<DestinationRow>(
        'select * from alert_destination where owner_id = $1 order by place',
        ownerId,
      ),

    /** Destinations whose turn it is, the longest due first, but none of these hosts, and perhaps no repeats. */
    due(
      now: number,
      {
        exceptHosts,
        exceptRepeats,
        limit,
      }: { exceptHosts: string[]; exceptRepeats: boolean; limit: number },
    ): Promise<DueRow[]> {
      const others = exceptHosts.length === 0 ? '' : `and host not in (${places(exceptHosts, 3)})`
      const first = exceptRepeats ? 'and attempts = 0' : ''
      return db.read<DueRow>(
        `select destination_id, owner_id, host, attempts from alert_destination
          where due_at <= $1 ${first} ${others}
          order by due_at, destination_id ${limitedTo(2)}`,
        now,
        limit,
        ...exceptHosts,
      )
    },

    waiting: (destinationId: string): Promise<AlertRow[]> =>
      db.read<AlertRow>(
        'select * from alert where destination_id = $1 and done_at is null order by position',
        destinationId,
      ),

    /**
     * What the destinations of an owner were told since a time, or are to be told; the newest first. One query,
     * so that an attempt and when the next one is due agree.
     */
    told: (ownerId: string, since: number, limit: number): Promise<ToldRow[]> =>
      db.read<ToldRow>(
        `select alert.*, case when alert.position = (select min(position) from alert w
            where w.destination_id = d.destination_id and w.done_at is null) then d.due_at end as next_at
          from alert join alert_destination d on d.destination_id = alert.destination_id
          where d.owner_id = $1 and (alert.done_at is null or alert.done_at > $2)
          order by alert.occurred_at desc, alert.position desc ${limitedTo(3)}`,
        ownerId,
        since,
        limit,
      ),
  }
}

export type AlertStore = ReturnType<typeof createAlertStore>
