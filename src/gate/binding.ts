/** The request digest on the server's side, and comparing with what was stored. */
import { hash } from 'node:crypto'
import { equalBytes, utf8 } from '../lib/bytes.ts'
import { bindingText, type GateBinding } from '../protocol/gate-binding.ts'

export function requestDigest(binding: GateBinding): string {
  return hash('sha256', bindingText(binding), 'hex')
}

/** Recomputed from its parts each time, and compared in time that does not depend on them. */
export function isBoundTo(storedDigest: string, binding: GateBinding): boolean {
  return equalBytes(utf8(requestDigest(binding)), utf8(storedDigest))
}
