/** The certificate that a node makes for itself at its first start. */
import { readFileSync } from 'node:fs'

/**
 * The PEM in this file.
 *
 * @throws until it is all there: the file exists before its text does, and a client that was given
 *   half of it would trust nobody for as long as it lives.
 */
export function readCertificate(file: string): string {
  const pem = readFileSync(file, 'utf8')
  if (!pem.trimEnd().endsWith('-----END CERTIFICATE-----')) {
    throw new Error(`${file} is still being written`)
  }
  return pem
}
