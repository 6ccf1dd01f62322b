/** Explains to the operator in one sentence why a node cannot be used. */
import { type NodeAnswer, NodeError, UnsupportedNetwork } from './error.ts'

/** `isAway` means that the node does not answer, which may pass. */
export type AccessProblem = { sentence: string; isAway: boolean }

/** A call, and the right that its credential needs for it. */
type Trial = { needs: string; call: () => Promise<unknown> }

/** How a node is asked whether Mayfly can work with it, and what its operator is told if not. */
export type AccessCheck = {
  baseUrl: string
  /** What should answer at the address: `speaks HTTPS as LND does`. */
  speaks: string
  /** What the address should be: `the REST port of LND`. */
  port: string
  /** How to make the certificate valid: `use the node's own tls.cert, made for that host`. */
  certificate: string
  info: Trial
  /** Calls that change nothing: the node refuses them also if the credential has the right. */
  trials: Trial[]
  /** The sentence for a refusal of the credential, which may lack this right. Null for any other refusal. */
  denied(answer: NodeAnswer, needs: string): string | null
}

/** The first right that is missing, or another problem, or null. */
export async function findProblem(check: AccessCheck): Promise<AccessProblem | null> {
  const { info, trials } = check
  for (const trial of [info, ...trials]) {
    try {
      await trial.call()
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      const denied = error.answer ? check.denied(error.answer, trial.needs) : null
      if (trial !== info && error.answer && denied === null) continue
      const isAway = error.reason === 'unreachable' || error.reason === 'timeout'
      return { sentence: denied ?? sentence(error, check), isAway }
    }
  }
  return null
}

function sentence(error: NodeError, words: AccessCheck): string {
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
      return error.message
    default:
      return error.reason satisfies never
  }
}
