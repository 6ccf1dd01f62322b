/** What can go wrong with a Lightning node, in words for its operator. */
import { codeOf } from '../../lib/errors.ts'
import type { Network } from '../lightning.ts'

/**
 * What went wrong with a node, told apart so that start-up can name the remedy. Messages go to logs:
 * they carry no credential, preimage or invoice, and no `cause`, for a parser's error quotes bytes.
 */
export type NodeFailure = 'unreachable' | 'timeout' | 'certificate' | 'refused' | 'malformed'

/** A node did not do what it was asked. `node` is its name at the beginning of the message. */
export class NodeError extends Error {
  override name = 'NodeError'
  readonly reason: NodeFailure
  /** The code and message of the node's own answer, where it gave one. */
  readonly answer: NodeAnswer | undefined

  constructor(node: string, message: string, { reason, answer }: NodeErrorOptions) {
    super(`${node}: ${message}`)
    this.reason = reason
    this.answer = answer
  }
}

/** What `NodeError` carries beside its message. */
export type NodeErrorOptions = { reason: NodeFailure; answer?: NodeAnswer | undefined }

/** gRPC's code for LND, JSON-RPC's for Core Lightning, the HTTP status for phoenixd, NIP-47's. */
export type NodeAnswer = { code: number | string; message: string }

/** The node is on a chain that no client of this interface can name. */
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

const MAX_QUOTED_CHARACTERS = 200

/** The node's own words, shortened, without anything long enough to be a secret or an invoice. */
export function quotable(text: string): string {
  return text
    .replaceAll(/[A-Za-z0-9+/=_-]{40,}/g, '…')
    .replaceAll(/[^\x20-\x7e…]/g, ' ')
    .slice(0, MAX_QUOTED_CHARACTERS)
}

/** What Node's or undici's error means, for a call that does `what`. */
export function transportError(node: string, what: string, error: unknown): NodeError {
  if (error instanceof NodeError) return error
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new NodeError(node, `${what} took too long`, { reason: 'timeout' })
  }
  const code = codeOf(error) || (error instanceof Error ? error.name : 'unknown error')
  const isCertificate = CERTIFICATE_CODE.test(code)
  return new NodeError(node, `${what} failed (${code})`, {
    reason: isCertificate ? 'certificate' : 'unreachable',
  })
}

// OpenSSL's verification codes have no common prefix; ERR_SSL_WRONG_VERSION_NUMBER (plain HTTP on
// the other side) is deliberately not among them.
const CERTIFICATE_CODE = /CERT|UNABLE_TO_(GET|VERIFY)|ERR_TLS_/
