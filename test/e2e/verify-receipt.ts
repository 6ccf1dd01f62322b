/**
 * Verifies a receipt with jose alone, in a process that knows only the receipt and the service's address.
 * Arguments: the receipt, the service, the project. Prints the claims as JSON.
 */
import { createRemoteJWKSet, jwtVerify } from 'jose'

const [, , receipt = '', service = '', audience = ''] = process.argv
const jwks = createRemoteJWKSet(new URL('/.well-known/gate-jwks.json', service))
const { payload } = await jwtVerify(receipt, jwks, {
  issuer: service,
  audience,
  typ: 'gate-receipt+jwt',
  algorithms: ['EdDSA'],
})
process.stdout.write(JSON.stringify(payload))
