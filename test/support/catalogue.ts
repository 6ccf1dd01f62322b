/** A service whose catalogue is another one than it sells by. */
import { between } from './between.ts'
import type { After } from './folder.ts'

type Plan = Record<string, unknown>

/** Starts a proxy in front of a server, which changes each plan of its catalogue. */
export async function catalogueOf(
  t: After,
  upstream: string,
  change: (plan: Plan) => void,
): Promise<string> {
  const catalogue = await (await fetch(`${upstream}/api/catalog`)).json()
  const { products } = catalogue as { products: Record<string, { plans: Plan[] }> }
  for (const plan of Object.values(products).flatMap(({ plans }) => plans)) change(plan)
  return between(t, upstream, (path, response) => {
    if (path !== '/api/catalog') return false
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(catalogue))
    return true
  })
}
