/**
 * A process that knows nothing but a receipt and the address of a service: what jose, by itself,
 * makes of it. Arguments: the receipt, the service, the project. Prints the claims as JSON.
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
