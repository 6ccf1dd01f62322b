/** What a monitor may be set to: by its owner, and at its purchase. */
import type { Static, TSchema } from 'typebox'
import { invalid } from '../http/errors.ts'
import { faultIn, validatorOf } from '../http/validation.ts'
import { hasInvisible } from '../lib/invisible.ts'
import type { Json } from '../lib/jcs.ts'
import { parseStrictJsonBytes } from '../lib/json.ts'
import { GRACE_SECONDS } from '../lib/monitor-bounds.ts'
import { isTimetable } from './schedule.ts'
import { MonitorTerms, type PulsePlan, type PulseSchedule, type PulseSettings } from './schema.ts'

/** @throws Problem `invalid settings` for what its schema refuses, and for texts that are none. */
export function readAs<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  if (!validatorOf(schema).Check(value) || !hasPlainTexts(value as PulseSettings)) {
    throw invalid('invalid settings', faultIn(schema, value))
  }
  return value
}

/** JSON can escape a lone surrogate, which is not a character. What looks like another monitor's name is none. */
const hasPlainTexts = ({ name = '', description = '' }: PulseSettings): boolean =>
  !hasInvisible(name) && description.isWellFormed()

/** @throws Problem `invalid settings` for a grace below the plan's least one, and for times that never come. */
export function checkTerms(
  { graceSeconds, schedule }: MonitorTerms,
  { minimumGraceSeconds, now }: { minimumGraceSeconds: number; now: number },
): void {
  if (schedule !== undefined) checkTimes(schedule, now)
  for (const seconds of [graceSeconds, schedule?.graceSeconds]) {
    if (seconds === undefined || seconds >= minimumGraceSeconds) continue
    const expected = `${minimumGraceSeconds} to ${GRACE_SECONDS.maximum}`
    throw invalid('invalid settings', { field: 'graceSeconds', expected })
  }
}

function checkTimes({ cron, timeZone }: PulseSchedule, now: number): void {
  if (!isTimetable({ cron: '* * * * *', timeZone }, now)) {
    throw invalid('invalid settings', {
      field: 'timeZone',
      expected: 'a name of the IANA time zone database, such as Europe/Berlin or UTC',
    })
  }
  if (!isTimetable({ cron, timeZone }, now)) {
    throw invalid('invalid settings', {
      field: 'cron',
      expected: 'five fields of cron that have a next run, such as 0 3 * * 1-5',
    })
  }
}

/**
 * The settings that a monitor is bought with, from `X-Pulse-Settings`. The least grace depends on the plan.
 * @throws Problem `invalid settings`
 */
export function monitorTerms(
  header: string | string[] | undefined,
  now: () => number,
): null | ((plan: Json) => Json) {
  if (header === undefined) return null
  const wanted = readAs(MonitorTerms, jsonOf(String(header)))
  return (plan) => {
    const { minimumGraceSeconds } = plan as PulsePlan
    checkTerms(wanted, { minimumGraceSeconds, now: now() })
    return wanted as Json
  }
}

/** Not an object if it is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return parseStrictJsonBytes(Buffer.from(text, 'latin1'))
  } catch {
    return null
  }
}
