/** /mcp/server-card (MCP Server Cards, SEP-2127): how hosts of MCP connect to the service. */
import { isIP } from 'node:net'
import { VERSION } from '../http/version.ts'
import { type Announced, noticeOf, sentences } from './announced.ts'

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
    name: `${reversed(new URL(baseUrl).hostname)}/mayfly`,
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
export const descriptionOf = (announced: Announced): string =>
  sentences('Inboxes, secrets and monitors over Lightning.', noticeOf(announced))

/** `com.example` for `example.com`. An address has no order to reverse. */
function reversed(host: string): string {
  const name = host.replace(/^\[(.*)\]$/, '$1').replaceAll(':', '-')
  return isIP(host.replace(/^\[|\]$/g, '')) === 0 ? name.split('.').reverse().join('.') : name
}
