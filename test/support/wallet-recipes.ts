/** The credentials of a paying wallet as docs/run/nodes.md tells people to make them, so that tests pay with just these. */
import { readFileSync } from 'node:fs'
import type { Restrictions } from './stand-ins/runes.ts'

const PAGE = readFileSync(new URL('../../docs/run/nodes.md', import.meta.url), 'utf8')
const RECIPES = PAGE.slice(PAGE.indexOf('## A wallet that pays'))

/** LND's permissions, such as `uri:/routerrpc.Router/SendPaymentV2`. */
export const PAYING_MACAROON: string[] = first(/^lncli bakemacaroon --save_to \S+ (.+)$/m).split(
  ' ',
)

/** Core Lightning's restrictions. */
export const PAYING_RUNE = JSON.parse(
  first(/^lightning-cli createrune restrictions='(.+)'$/m),
) as Restrictions

function first(recipe: RegExp): string {
  const found = recipe.exec(RECIPES)?.[1]
  if (found === undefined) throw new Error(`docs/run/nodes.md has no recipe like ${recipe}`)
  return found
}

/** What a command gives to the wallet that it opens. Nobody is told of the requests, and no simulator pays. */
export const OPENING = { url: '', traced: (fetch: typeof globalThis.fetch) => fetch }
