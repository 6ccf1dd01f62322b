/** Explains to the operator in one sentence why a node cannot be used. */
import { type NodeError, UnsupportedNetwork } from './error.ts'

/** `isAway` means that the node does not answer, which may pass. */
export type AccessProblem = { sentence: string; isAway: boolean }

export type AccessWords = {
  baseUrl: string
  /** What should answer at the address: `speaks HTTPS as LND does`. */
  speaks: string
  /** What the address should be: `the REST port of LND`. */
  port: string
  /** How to make the certificate valid: `use the node's own tls.cert, made for that host`. */
  certificate: string
  /** The sentence for a call that the node refused. */
  refused(error: NodeError): string
}

/** The problem that an error of the node means. */
export function accessProblem(error: NodeError, words: AccessWords): AccessProblem {
  const isAway = error.reason === 'unreachable' || error.reason === 'timeout'
  return { sentence: sentence(error, words), isAway }
}

function sentence(error: NodeError, words: AccessWords): string {
  const { baseUrl } = words
  if (error instanceof UnsupportedNetwork) return error.message
  switch (error.reason) {
    case 'unreachable':
      return `${error.message}: nothing at ${baseUrl} ${words.speaks}`
    case 'timeout':
      return `${error.message}: whatever is at ${baseUrl} does not answer`
    case 'certificate':
      if (error.message.includes('CERT_HAS_EXPIRED')) {
        return (
          `${error.message}: the certificate of ${baseUrl} ran out; make the node a new one, and ` +
          'copy it here again'
        )
      }
      return (
        `${error.message}: ${baseUrl} shows a certificate that the cert of MAYFLY_LIGHTNING_URL ` +
        `does not vouch for; ${words.certificate}`
      )
    case 'malformed':
      return `${error.message}: ${baseUrl} is not ${words.port}`
    case 'refused':
      return words.refused(error)
    default:
      return error.reason satisfies never
  }
}
