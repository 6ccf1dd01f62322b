/** The documents by which programs find the service. docs/agents.md says which formats these are. */
import type { App } from '../http/app.ts'
import { mountText } from '../http/pages/encoded.ts'
import { oneUrlPath } from '../http/paid/one-url.ts'
import type { SoldPlan } from '../http/product.ts'
import type { Clock } from '../lib/clock.ts'
import type { Announced, AnnouncedProduct } from './announced.ts'
import {
  aiCatalog,
  dayOf,
  l402Services,
  ROBOTS,
  SECURITY_PATH,
  SERVER_CARD_PATH,
  SERVER_CARD_TYPE,
  securityText,
  serverCard,
} from './documents.ts'
import { llmsText } from './llms.ts'
import { SKILLS_PATH, skillIndex, skillPath, skillText } from './skills.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

type SoldProduct = Omit<AnnouncedProduct, 'plans'> & { plans: Readonly<Record<string, SoldPlan>> }

export function mountDiscovery(
  app: App,
  options: Pick<Announced, 'network' | 'isSimulator' | 'hasMcp' | 'operator'> & {
    publicUrl: () => string
    clock: Clock
    /** All products and plans, on sale or not. A reload can change the plans. */
    products: readonly SoldProduct[]
    /** Another number after each reload. */
    edition: () => number
    /** The parts of /llms.txt of all products that are switched on. */
    guides: readonly string[]
  },
): void {
  const { publicUrl, clock, network, isSimulator, hasMcp, operator, guides, edition } = options
  // At a request, when the address and all routes are known.
  const announced = (): Announced => ({
    baseUrl: publicUrl(),
    network,
    isSimulator,
    hasMcp,
    operator,
    products: options.products.filter(isOnSale).map((product) => announce(app, product)),
  })
  const json = (path: string, type: string, document: (announced: Announced) => object): void =>
    mountText(app, { path, type, text: () => JSON.stringify(document(announced())), edition })

  json('/.well-known/l402-services', JSON_TYPE, l402Services)
  json(SKILLS_PATH, JSON_TYPE, skillIndex)
  json('/.well-known/ai-catalog.json', 'application/ai-catalog+json', aiCatalog)
  if (hasMcp) json(SERVER_CARD_PATH, SERVER_CARD_TYPE, serverCard)
  for (const product of options.products) {
    mountText(app, {
      path: skillPath(product.name),
      type: 'text/markdown; charset=utf-8',
      text: () => (isOnSale(product) ? skillText(announced(), announce(app, product)) : null),
      edition,
    })
  }
  const plain = (path: string, text: () => string | null, changes = edition): void =>
    mountText(app, { path, type: 'text/plain; charset=utf-8', text, edition: changes })
  plain('/llms.txt', () => llmsText(announced(), guides))
  plain('/robots.txt', () => ROBOTS)
  plain(
    SECURITY_PATH,
    () => securityText({ baseUrl: publicUrl(), operator }, clock.now()),
    () => dayOf(clock.now()),
  )
}

const isOnSale = ({ plans }: SoldProduct): boolean =>
  Object.values(plans).some(({ available }) => available)

/** A product whose orders need a body is bought by POST alone. */
const METHODS = ['GET', 'POST'] as const

function announce(app: App, product: SoldProduct): AnnouncedProduct {
  const path = `${oneUrlPath(product.name)}/l402`
  const method = METHODS.find((one) => app.hasRoute({ method: one, url: path }))
  const plans = Object.values(product.plans)
    .filter(({ available }) => available)
    .map(({ planId, priceSats }) => ({
      planId,
      priceSats,
      byUrl: method ? { method, l402Path: path.replace(':planId', planId) } : null,
    }))
  return { ...product, plans }
}
