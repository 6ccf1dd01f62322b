/** Computes the digest of a request, and compares it with a stored one. */
import { hash } from 'node:crypto'
import { equalBytes, utf8 } from '../lib/bytes.ts'
import { bindingText, type GateBinding } from '../protocol/gate-binding.ts'

export function requestDigest(binding: GateBinding): string {
  return hash('sha256', bindingText(binding), 'hex')
}

/** Whether the digest was made of this binding. Compares in constant time. */
export function isBoundTo(storedDigest: string, binding: GateBinding): boolean {
  return equalBytes(utf8(requestDigest(binding)), utf8(storedDigest))
}
