/** /.well-known/ai-catalog.json (AI Catalog 1.0): the skills, and the documents that describe the service. */
import { type Announced, noticeOf, sentences, titleOf } from './announced.ts'
import { descriptionOf, SERVER_CARD_PATH, SERVER_CARD_TYPE } from './server-card.ts'
import { skillDescription, skillName, skillPath } from './skills.ts'

export const AI_CATALOG_PATH = '/.well-known/ai-catalog.json'

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

/** The publisher in the names of the entries, where a colon separates. */
const hostOf = (baseUrl: string): string =>
  new URL(baseUrl).hostname.replace(/^\[(.*)\]$/, '$1').replaceAll(':', '-')
