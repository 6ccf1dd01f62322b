/** The documents of fixed form by which programs find the service. docs/agents.md says who reads each of them. */
import { isIP } from 'node:net'
import { isEmail } from '../http/operator.ts'
import { VERSION } from '../http/version.ts'
import { type Announced, noticeOf, sentences, titleOf } from './announced.ts'
import { skillDescription, skillName, skillPath } from './skills.ts'

// /.well-known/l402-services: the addresses that directories of L402 services probe. Nobody publishes a
// schema; the members are those that the crawler of 402index.io reads.

export function l402Services(announced: Announced): object {
  const { baseUrl, network, products } = announced
  return {
    // First, because the crawler tries only the first five addresses of the document.
    // What a plain GET shows comes before what needs a body.
    services: (['GET', 'POST'] as const).flatMap((method) =>
      products.flatMap(({ name, about, plans }) =>
        plans.flatMap(({ planId, priceSats, byUrl }) =>
          byUrl?.method !== method
            ? []
            : {
                id: `${name}-${planId}`,
                name: `Mayfly ${titleOf(name)} ${planId}`,
                description: sentences(about, noticeOf(announced)),
                endpoint: baseUrl + byUrl.l402Path,
                method,
                pricing: { type: 'fixed', amount: priceSats, currency: 'sat' },
              },
        ),
      ),
    ),
    name: 'Mayfly',
    description: sentences(
      'Temporary capabilities, paid over the Lightning network, without accounts.',
      noticeOf(announced),
    ),
    protocol: 'L402',
    network,
    homepage: `${baseUrl}/`,
    openapi: `${baseUrl}/openapi.json`,
    llms: `${baseUrl}/llms.txt`,
  }
}

// /.well-known/ai-catalog.json (AI Catalog 1.0): the skills, and the documents that describe the service.

export function aiCatalog(announced: Announced): object {
  const { baseUrl, products } = announced
  const host = hostOf(baseUrl)
  return {
    specVersion: '1.0',
    host: { displayName: 'Mayfly', identifier: host, documentationUrl: `${baseUrl}/docs` },
    entries: [
      ...products.map((product) => ({
        identifier: `urn:air:${host}:skill:${skillName(product.name)}`,
        displayName: `Mayfly ${titleOf(product.name)}`,
        type: 'application/agent-skills+md',
        url: baseUrl + skillPath(product.name),
        description: skillDescription(announced, product),
      })),
      ...(announced.hasMcp
        ? [
            {
              identifier: `urn:air:${host}:mayfly`,
              displayName: 'Mayfly for agents',
              type: SERVER_CARD_TYPE,
              url: baseUrl + SERVER_CARD_PATH,
              description: descriptionOf(announced),
            },
          ]
        : []),
      {
        identifier: `urn:air:${host}:api:openapi`,
        displayName: 'Mayfly API',
        type: 'application/openapi+json',
        url: `${baseUrl}/openapi.json`,
        description: sentences('Every operation, with prices.', noticeOf(announced)),
      },
      {
        identifier: `urn:air:${host}:guide:llms`,
        displayName: 'Mayfly for programs',
        type: 'text/plain',
        url: `${baseUrl}/llms.txt`,
        description: sentences('How to buy, save and use.', noticeOf(announced)),
      },
    ],
  }
}

/** The publisher in names, where a colon separates. */
const hostOf = (baseUrl: string): string =>
  new URL(baseUrl).hostname.replace(/^\[(.*)\]$/, '$1').replaceAll(':', '-')

// /mcp/server-card (MCP Server Cards, SEP-2127): how hosts of MCP connect to the service.

export const SERVER_CARD_PATH = '/mcp/server-card'
export const SERVER_CARD_TYPE = 'application/mcp-server-card+json'
/** The endpoint, and the revisions of the protocol that it speaks. */
const ENDPOINT = '/mcp'
const REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26']
const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json'

export function serverCard(announced: Announced): object {
  const { baseUrl } = announced
  return {
    $schema: SCHEMA,
    name: `${reversed(hostOf(baseUrl))}/mayfly`,
    version: VERSION,
    title: 'Mayfly',
    description: descriptionOf(announced),
    websiteUrl: baseUrl,
    remotes: [
      {
        type: 'streamable-http',
        url: baseUrl + ENDPOINT,
        supportedProtocolVersions: REVISIONS,
      },
    ],
  }
}

/** Short enough for the notice beside it. */
const descriptionOf = (announced: Announced): string =>
  sentences('Inboxes, secrets and monitors over Lightning.', noticeOf(announced))

/** `com.example` for `example.com`. An address has no order to reverse. */
const reversed = (host: string): string =>
  isIP(host) === 0 ? host.split('.').reverse().join('.') : host

// What crawlers and security researchers look for: /robots.txt (RFC 9309) and security.txt (RFC 9116).

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
