/** Parses the JSON body that sets the destinations of alerts. */
import type { Alerts } from '../../alerts/alerts.ts'
import type { Wanted } from '../../alerts/destinations.ts'
import { calledUrl, URL_FORMATS } from '../../lib/alert-formats.ts'
import { containsToken } from '../../lib/ids.ts'
import { isObject, parseStrictJsonBytes } from '../../lib/json.ts'
import { invalid } from '../errors.ts'
import { validatorOf } from '../validation.ts'
import { AlertSettings } from './schema.ts'

/**
 * The destinations that a body asks for.
 * @throws Problem `invalid request body` for invalid JSON, `invalid destinations` for anything else.
 */
export async function parseDestinations(
  body: Buffer,
  { alerts, ownerId }: { alerts: Alerts; ownerId: string },
): Promise<Wanted[]> {
  const value = parseStrictJsonBytes(body)
  if (value === undefined) {
    throw invalid('invalid request body', { expected: 'JSON with each member once' })
  }
  if (!validatorOf(AlertSettings).Check(value)) throw refused(...faultOf(value))
  const wanted: Wanted[] = []
  for (const one of (value as AlertSettings).destinations) {
    const next = await wantedOf(one, { alerts, ownerId })
    if (wanted.some((other) => isSame(other, next))) {
      throw refused('destinations', 'each destination once')
    }
    wanted.push(next)
  }
  return wanted
}

async function wantedOf(
  one: AlertSettings['destinations'][number],
  { alerts, ownerId }: { alerts: Alerts; ownerId: string },
): Promise<Wanted> {
  if ('url' in one) return urlOf(one, alerts)
  if ('inbox' in one) return inboxOf(one, alerts)
  const kept = await alerts.destinations.find(ownerId, one.id)
  if (kept) return kept
  throw refused('id', 'the id of a destination that is set')
}

type UrlSettings = Extract<AlertSettings['destinations'][number], { url: string }>
type InboxSettings = Extract<AlertSettings['destinations'][number], { inbox: string }>

function urlOf(one: UrlSettings, alerts: Alerts): Wanted {
  const { url: text, format = 'standard', opensAt: isPrivate = false } = one
  const read = alerts.readUrl(text)
  if ('fault' in read) throw refused('url', `an https URL of a public host; this is ${read.fault}`)
  const { url } = read
  if (hidesToken(text) || hidesToken(url.href)) {
    throw refused('url', 'a URL without a token of this service')
  }
  const called = calledUrl(format, url)
  if ('expected' in called) throw refused('url', called.expected)
  return { format, url, isPrivate }
}

async function inboxOf(
  { inbox: inboxId, ingestToken, opensAt: isPrivate = false }: InboxSettings,
  alerts: Alerts,
): Promise<Wanted> {
  const admits = await alerts.inboxes()?.admits(inboxId, ingestToken)
  if (!admits) throw refused('ingestToken', 'the ingest token of that inbox')
  return { format: 'inbox', inboxId, isPrivate }
}

const refused = (field: string, expected: string) =>
  invalid('invalid destinations', { field, expected })

const isSame = (a: Wanted, b: Wanted): boolean =>
  a.format === 'inbox' || b.format === 'inbox'
    ? a.format === b.format && 'inboxId' in a && 'inboxId' in b && a.inboxId === b.inboxId
    : a.url.href === b.url.href

/** Deeper escapes than any server decodes. */
const MAX_DECODED = 5

/** A token may be hidden by escapes, of some characters or of escapes. What never ends is no URL of a receiver. */
function hidesToken(text: string): boolean {
  let decoded = text
  for (let times = 0; times <= MAX_DECODED; times++) {
    if (containsToken(decoded)) return true
    // One by one: among escapes of other characters, those of a token are read all the same.
    const next = decoded.replace(/%([0-7][0-9a-f])/gi, (_escape, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
    if (next === decoded) return false
    decoded = next
  }
  return true
}

/** What is wrong with a value that the schema refuses: a member, and what it must be. */
function faultOf(value: unknown): [field: string, expected: string] {
  const list = isObject(value) ? value.destinations : undefined
  if (!isObject(value) || !Array.isArray(list) || Object.keys(value).length !== 1) {
    return ['destinations', 'an array, and no other member']
  }
  if (list.length > 3) return ['destinations', 'at most 3']
  for (const one of list) {
    if (!isObject(one)) return ['destinations', 'objects']
    if ('opensAt' in one && typeof one.opensAt !== 'boolean') return ['opensAt', 'true or false']
    if ('inbox' in one || 'ingestToken' in one) {
      if (typeof one.inbox !== 'string') return ['inbox', 'the id of an inbox']
      if (typeof one.ingestToken !== 'string' || one.ingestToken.length > 256) {
        return ['ingestToken', 'the ingest token of that inbox']
      }
      if (one.inbox.length > 64) return ['inbox', 'the id of an inbox']
    } else if ('id' in one) {
      if (typeof one.id !== 'string' || one.id.length > 64) {
        return ['id', 'the id of a destination that is set']
      }
    } else if (typeof one.url !== 'string' || one.url.length > 2048) {
      return ['url', 'an https URL of at most 2048 characters']
    } else if ('format' in one) {
      return ['format', `one of ${URL_FORMATS.join(', ')}`]
    }
  }
  return ['destinations', '{"url", "format"}, {"inbox", "ingestToken"} or {"id"}, and nothing else']
}
