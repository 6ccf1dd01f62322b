/** The service that these pages are of, through the parts of the SDK that a page needs. */
import { createHttp, platformFetch } from '../client/http.ts'
import type { Catalog } from '../client/index.ts'

/** Each page takes what it needs on top of this: all of the SDK would weigh more than most pages. */
export const service = createHttp(location.origin, platformFetch)

/** What is on sale now. */
export async function catalog(): Promise<Catalog> {
  return (await service.get({ path: '/api/catalog' })) as Catalog
}
