/** What a destination keeps secret in the store: its URL and what signs. Encrypted under the service's secret. */
import { type Secrets, seal, unseal } from '../secrets/secrets.ts'

export type Sealed = {
  seal(plain: string, destinationId: string): Buffer
  /** The text, and whether it is sealed under the current secret. Null if no configured secret opens it. */
  open(sealed: Uint8Array, destinationId: string): { plain: string; isCurrent: boolean } | null
}

export function createSealed(secrets: Secrets): Sealed {
  const keys = secrets.keys('alert destination')
  return {
    seal: (plain, destinationId) => seal(keys[0], Buffer.from(plain, 'utf8'), destinationId),
    open(sealed, destinationId) {
      for (const [i, key] of keys.entries()) {
        const plain = unseal(key, sealed, destinationId)
        if (plain) return { plain: plain.toString('utf8'), isCurrent: i === 0 }
      }
      return null
    },
  }
}
