/** Reads the settings of where alerts go. */
import type { Alerts } from '../../alerts/alerts.ts'
import type { Wanted } from '../../alerts/destinations.ts'
import { calledUrl } from '../../lib/alert-formats.ts'
import { containsToken } from '../../lib/ids.ts'
import { tokenHash } from '../../secrets/tokens.ts'
import { invalid } from '../errors.ts'
import type { AlertSettings } from './schema.ts'

/**
 * The destinations that settings ask for.
 * @throws Problem `invalid destinations`.
 */
export async function readDestinations(
  { destinations }: AlertSettings,
  { alerts, ownerId }: { alerts: Alerts; ownerId: string },
): Promise<Wanted[]> {
  const wanted: Wanted[] = []
  for (const one of destinations) {
    const next = await wantedOf(one, { alerts, ownerId })
    if (wanted.some((other) => addressOf(other) === addressOf(next))) {
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
  return { format: 'inbox', inboxId, tokenHash: tokenHash(ingestToken).toString('hex'), isPrivate }
}

const refused = (field: string, expected: string) =>
  invalid('invalid destinations', { field, expected })

const addressOf = (one: Wanted): string => (one.format === 'inbox' ? one.inboxId : one.url.href)

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
