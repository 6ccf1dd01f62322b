/** Checks at the start whether LND allows every call that Mayfly needs. */

import { type AccessProblem, findProblem } from '../node/access.ts'
import type { NodeAnswer } from '../node/error.ts'
import type { NodeRequest } from '../node/http.ts'
import type { LndHttp } from './http.ts'

const BAKE = 'bake one with: lncli bakemacaroon invoices:read invoices:write info:read'
const DENIED = 'permission denied'

// The messages of LND and its macaroon library. Their gRPC code is only "unknown".
const MACAROON_ERROR = /macaroon|caveat|verification failed|encoding\/hex|unmarshal|data format/

export type AccessOptions = {
  http: LndHttp
  info: () => Promise<unknown>
  baseUrl: string
  timeoutMs: number
}

/** The first missing permission or other problem, or null. */
export function checkLnd(options: AccessOptions): Promise<AccessProblem | null> {
  const { http, info, baseUrl, timeoutMs } = options
  const trial = (needs: string, call: Pick<NodeRequest, 'method' | 'path' | 'json'>) => ({
    needs,
    call: () => http.call({ ...call, what: 'trying the macaroon', timeoutMs }),
  })
  return findProblem({
    baseUrl,
    speaks: 'speaks HTTPS as LND does',
    port: 'the REST port of LND',
    certificate: "use the node's own tls.cert, made for that host",
    info: { needs: 'info:read', call: info },
    trials: [
      trial('invoices:read', { method: 'GET', path: `/v1/invoice/${'00'.repeat(32)}` }),
      // Every version refuses an amount that is given twice, so this makes no invoice.
      trial('invoices:write', {
        method: 'POST',
        path: '/v1/invoices',
        json: { value: '1', value_msat: '1' },
      }),
    ],
    denied,
  })
}

function denied({ message }: NodeAnswer, permission: string): string | null {
  // Usually this is the invoice.macaroon that LND makes, which lacks info:read.
  if (message === DENIED) return `LND: the macaroon lacks ${permission}; ${BAKE}`
  return MACAROON_ERROR.test(message)
    ? `LND does not accept the macaroon (of another node, expired or damaged); ${BAKE}`
    : null
}
