/** Errors of Lightning nodes, in words for their operator. */
import { codeOf } from '../../lib/errors.ts'
import { reasonOf } from '../../lib/reason.ts'
import type { Network } from '../lightning.ts'

/**
 * The kinds of failures, from which the start chooses its advice. Messages go to the log, so they contain
 * no credential, preimage or invoice. There is no `cause`, because a parser's error quotes its input.
 */
export type NodeFailure = 'unreachable' | 'timeout' | 'certificate' | 'refused' | 'malformed'

/** A call to a node failed. `node` is the name that begins the message. */
export class NodeError extends Error {
  override name = 'NodeError'
  readonly reason: NodeFailure
  /** The code and message of the node's answer, if it answered. */
  readonly answer: NodeAnswer | undefined

  constructor(node: string, message: string, { reason, answer }: NodeErrorOptions) {
    super(`${node}: ${message}`)
    this.reason = reason
    this.answer = answer
  }
}

/** What `NodeError` carries beside its message. */
export type NodeErrorOptions = { reason: NodeFailure; answer?: NodeAnswer | undefined }

/** `code` is gRPC's for LND, JSON-RPC's for Core Lightning, the HTTP status for phoenixd, or NIP-47's. */
export type NodeAnswer = { code: number | string; message: string }

/** The node is on a network that is not part of the interface. */
export class UnsupportedNetwork extends NodeError {
  override name = 'UnsupportedNetwork'
  constructor(node: string, network: string) {
    const named = /^[a-z0-9]{1,20}$/.test(network) ? network : 'an unknown network'
    const message = `the node runs on ${named}; mainnet, signet and regtest are supported`
    super(node, message, { reason: 'malformed' })
  }
}

/** The network, if Mayfly supports it. @throws UnsupportedNetwork */
export function supportedNetwork(node: string, network: string): Network {
  if (network === 'mainnet' || network === 'regtest' || network === 'signet') return network
  throw new UnsupportedNetwork(node, network)
}

/** The NodeError for an error of Node or undici. `what` says what the call was doing. */
export function transportError(node: string, what: string, error: unknown): NodeError {
  if (error instanceof NodeError) return error
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new NodeError(node, `${what} took too long`, { reason: 'timeout' })
  }
  const code = codeOf(error) || (error instanceof Error ? error.name : 'unknown error')
  const isCertificate = CERTIFICATE_CODE.test(code)
  // Which certificate is meant, and what to do, is said by whoever knows the node.
  const why = isCertificate ? code : (reasonOf(error) ?? code)
  return new NodeError(node, `${what} failed (${why})`, {
    reason: isCertificate ? 'certificate' : 'unreachable',
  })
}

// OpenSSL's verification codes have no common prefix. ERR_SSL_WRONG_VERSION_NUMBER is left out, because
// it means that the other side speaks plain HTTP.
const CERTIFICATE_CODE = /CERT|UNABLE_TO_(GET|VERIFY)|ERR_TLS_/
