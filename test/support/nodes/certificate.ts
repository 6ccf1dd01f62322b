/** The certificate that a node makes for itself at its first start. */
import { readFileSync } from 'node:fs'

/**
 * The PEM in this file.
 * @throws until the file is complete. A client that got half of the certificate would trust no server.
 */
export function readCertificate(file: string): string {
  const pem = readFileSync(file, 'utf8')
  if (!pem.trimEnd().endsWith('-----END CERTIFICATE-----')) {
    throw new Error(`${file} is still being written`)
  }
  return pem
}
