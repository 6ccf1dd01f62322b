/**
 * /.well-known/l402-services: the addresses that directories of L402 services probe. Nobody publishes a
 * schema; the members are those that the crawler of 402index.io reads.
 */
import { type Announced, noticeOf, sentences, titleOf } from './announced.ts'

export const L402_SERVICES_PATH = '/.well-known/l402-services'

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
