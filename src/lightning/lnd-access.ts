/** Finds out, at start-up, whether LND lets us do all we need, and says what to do if not. */
import { UnsupportedNetwork } from './lnd-answers.ts'
import { LndError } from './lnd-error.ts'
import type { LndCall, LndHttp } from './lnd-http.ts'

const BAKE = 'bake one with: lncli bakemacaroon invoices:read invoices:write info:read'
const DENIED = 'permission denied'

// The words of LND and its macaroon library; their code says no more than "unknown".
const MACAROON_ERROR = /macaroon|caveat|verification failed|encoding\/hex|unmarshal|data format/

export type AccessOptions = {
  http: LndHttp
  info: () => Promise<unknown>
  baseUrl: string
  timeoutMs: number
}

/** What is wrong, in one sentence. `isAway` when it may right itself: the node does not answer. */
export type AccessProblem = { sentence: string; isAway: boolean }

/** The first thing that is missing, or null. */
export async function findProblem({
  http,
  info,
  baseUrl,
  timeoutMs,
}: AccessOptions): Promise<AccessProblem | null> {
  const infoFailure = await failure(info())
  if (infoFailure) return problem(infoFailure, baseUrl, 'info:read')

  // Both are refused: with the permission for what they ask, without it for asking.
  const probes: [permission: string, call: Omit<LndCall, 'what' | 'timeoutMs'>][] = [
    ['invoices:read', { method: 'GET', path: `/v1/invoice/${'00'.repeat(32)}` }],
    // An amount given twice is refused by every version, so no invoice comes of it.
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

async function failure(call: Promise<unknown>): Promise<LndError | null> {
  try {
    await call
    return null
  } catch (error) {
    if (error instanceof LndError) return error
    throw error
  }
}

function problem(error: LndError, baseUrl: string, permission: string): AccessProblem {
  const isAway = error.reason === 'unreachable' || error.reason === 'timeout'
  return { sentence: sentence(error, baseUrl, permission), isAway }
}

function sentence(error: LndError, baseUrl: string, permission: string): string {
  if (error instanceof UnsupportedNetwork) return error.message
  switch (error.reason) {
    case 'unreachable':
      return `${error.message}: nothing at ${baseUrl} speaks HTTPS as LND does`
    case 'timeout':
      return `${error.message}: whatever is at ${baseUrl} does not answer`
    case 'certificate':
      return (
        `${error.message}: ${baseUrl} shows a certificate that the cert of MAYFLY_LIGHTNING_URL ` +
        "does not vouch for; use the node's own tls.cert, made for that host"
      )
    case 'malformed':
      return `${error.message}: ${baseUrl} is not the REST port of LND`
    case 'refused':
      return macaroonSentence(error, permission)
    default:
      return error.reason satisfies never
  }
}

function macaroonSentence(error: LndError, permission: string): string {
  const message = error.answer?.message ?? ''
  // The invoice.macaroon that LND makes lacks info:read: the usual way to come here.
  if (message === DENIED) return `LND: the macaroon lacks ${permission}; ${BAKE}`
  if (isAboutMacaroon(message)) {
    return `LND does not accept the macaroon (of another node, expired or damaged); ${BAKE}`
  }
  return error.message
}

function isAboutMacaroon(message: string): boolean {
  return message === DENIED || MACAROON_ERROR.test(message)
}
