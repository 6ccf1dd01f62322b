/** SHA-256 with WebCrypto, which servers and browsers have. */
import { hex } from './bytes.ts'

/** In lower-case hex. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}
