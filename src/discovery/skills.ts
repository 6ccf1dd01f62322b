/**
 * /.well-known/agent-skills/ (Agent Skills Discovery 0.2.0): a skill per product, which buys and uses it. Its
 * text is that of /llms.txt without the other products.
 */
import { hash } from 'node:crypto'
import { type Announced, type AnnouncedProduct, noticeOf, sentences } from './announced.ts'
import { howToBuy, withAddress } from './llms.ts'

const ROOT = '/.well-known/agent-skills'
export const SKILLS_PATH = `${ROOT}/index.json`
const SCHEMA = 'https://schemas.agentskills.io/discovery/0.2.0/schema.json'

/** The address of its skill. */
export const skillPath = (product: string): string => `${ROOT}/${skillName(product)}/SKILL.md`

export const skillName = (product: string): string => `mayfly-${product}`

export const skillDescription = (announced: Announced, { skill }: AnnouncedProduct): string =>
  sentences(skill, noticeOf(announced))

export function skillIndex(announced: Announced): object {
  return {
    $schema: SCHEMA,
    skills: announced.products.map((product) => ({
      name: skillName(product.name),
      type: 'skill-md',
      description: skillDescription(announced, product),
      url: announced.baseUrl + skillPath(product.name),
      digest: `sha256:${hash('sha256', skillText(announced, product), 'hex')}`,
    })),
  }
}

export function skillText(announced: Announced, product: AnnouncedProduct): string {
  const { baseUrl, isSimulator } = announced
  const prices = product.plans.map(({ planId, priceSats }) => `${planId} ${priceSats} sats`)
  const parts = [
    // A JSON text is a YAML text, too, whatever is in the description.
    `---
name: ${skillName(product.name)}
description: ${JSON.stringify(skillDescription(announced, product))}
---

All paths are at {base_url}.
`,
    product.guide,
    `Prices: ${prices.join(', ')}. The invoice is binding.\n`,
    howToBuy({ isSimulator, products: [product] }),
    'Every operation: {base_url}/openapi.json, and the documents that it links\n',
  ]
  return withAddress(parts.join('\n'), baseUrl)
}
