/** Errors of LND. */
import { type NodeAnswer, NodeError, type NodeFailure } from '../node/error.ts'

/** `answer` has the gRPC code and message if LND refused the call. */
export function lndError(reason: NodeFailure, message: string, answer?: NodeAnswer): NodeError {
  return new NodeError('LND', message, { reason, answer })
}
