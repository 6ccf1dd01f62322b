/** What crawlers and security researchers look for: /robots.txt (RFC 9309) and security.txt (RFC 9116). */
import { isEmail } from '../http/operator.ts'
import type { Announced } from './announced.ts'

/** Pages and documents are for everyone. Addresses that act, sell or hold what somebody bought are for nobody's index. */
const DISALLOWED = ['/api/', '/c/', '/p/', '/w/', '/simulator/']
export const ROBOTS = `User-agent: *\n${DISALLOWED.map((path) => `Disallow: ${path}\n`).join('')}`

export const SECURITY_PATH = '/.well-known/security.txt'
/** Shorter than the year that the RFC recommends at most. */
const VALID_DAYS = 90
const DAY_MS = 24 * 60 * 60 * 1000

/** The text changes once a day, so that it has never expired. */
export const dayOf = (now: number): number => Math.floor(now / DAY_MS)

/** Null without a contact: a text without one is invalid. */
export function securityText(
  { baseUrl, operator }: Pick<Announced, 'baseUrl' | 'operator'>,
  now: number,
): string | null {
  const { contact } = operator
  if (contact === null) return null
  const expiresAt = new Date((dayOf(now) + VALID_DAYS) * DAY_MS)
  return [
    `Contact: ${isEmail(contact) ? `mailto:${contact}` : contact}`,
    `Expires: ${expiresAt.toISOString()}`,
    `Canonical: ${baseUrl}${SECURITY_PATH}`,
    '',
  ].join('\n')
}
