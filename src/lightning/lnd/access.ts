/** Checks at the start whether LND allows every call that Mayfly needs. */

import { type AccessProblem, accessProblem } from '../node/access.ts'
import { NodeError } from '../node/error.ts'
import type { LndCall, LndHttp } from './http.ts'

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
export async function findProblem({
  http,
  info,
  baseUrl,
  timeoutMs,
}: AccessOptions): Promise<AccessProblem | null> {
  const infoFailure = await failure(info())
  if (infoFailure) return problem(infoFailure, baseUrl, 'info:read')

  // LND refuses both calls: as invalid if the macaroon has the permission, otherwise as denied.
  const probes: [permission: string, call: Omit<LndCall, 'what' | 'timeoutMs'>][] = [
    ['invoices:read', { method: 'GET', path: `/v1/invoice/${'00'.repeat(32)}` }],
    // Every version refuses an amount that is given twice, so this makes no invoice.
    [
      'invoices:write',
      { method: 'POST', path: '/v1/invoices', body: { value: '1', value_msat: '1' } },
    ],
  ]
  for (const [permission, call] of probes) {
    const refusal = await failure(http.call({ ...call, what: 'trying the macaroon', timeoutMs }))
    if (!refusal || (refusal.answer && !isAboutMacaroon(refusal.answer.message))) continue
    return problem(refusal, baseUrl, permission)
  }
  return null
}

async function failure(call: Promise<unknown>): Promise<NodeError | null> {
  try {
    await call
    return null
  } catch (error) {
    if (error instanceof NodeError) return error
    throw error
  }
}

function problem(error: NodeError, baseUrl: string, permission: string): AccessProblem {
  return accessProblem(error, {
    baseUrl,
    speaks: 'speaks HTTPS as LND does',
    port: 'the REST port of LND',
    certificate: "use the node's own tls.cert, made for that host",
    refused: (refusal) => macaroonSentence(refusal, permission),
  })
}

function macaroonSentence(error: NodeError, permission: string): string {
  const message = error.answer?.message ?? ''
  // Usually this is the invoice.macaroon that LND makes, which lacks info:read.
  if (message === DENIED) return `LND: the macaroon lacks ${permission}; ${BAKE}`
  if (isAboutMacaroon(message)) {
    return `LND does not accept the macaroon (of another node, expired or damaged); ${BAKE}`
  }
  return error.message
}

function isAboutMacaroon(message: string): boolean {
  return message === DENIED || MACAROON_ERROR.test(message)
}
