/** A GATE payment is bound to exactly one request to one route of one project. */
import { utf8 } from '../lib/bytes.ts'
import { jcs } from '../lib/jcs.ts'
import { sha256 } from '../lib/sha256.ts'

export type GateBinding = {
  /** The project's id. */
  project: string
  /** The route's id. */
  route: string
  /** The HTTP method, as sent. */
  method: string
  /** Path and query, as sent. */
  path: string
  /** SHA-256 of the exact body, in lower-case hex. Without a body, that of the empty string. */
  bodySha256: string
}

/** The canonical JSON (RFC 8785) whose SHA-256 in hex is the request digest. */
export function bindingText({ project, route, method, path, bodySha256 }: GateBinding): string {
  return jcs({ project, route, method, path, bodySha256 })
}

/** The request digest of a request, computed with WebCrypto. */
export async function gateRequestDigest(
  request: Omit<GateBinding, 'bodySha256'> & { body: Uint8Array<ArrayBuffer> },
): Promise<string> {
  const { project, route, method, path, body } = request
  const bodySha256 = await sha256(body)
  return sha256(utf8(bindingText({ project, route, method, path, bodySha256 })))
}
