/** The `Idempotency-Key` header, which names an order. */
import type { FastifyRequest } from 'fastify'
import { isIdempotencyKey } from '../payment/keys.ts'
import { invalid, type Problem } from './errors.ts'

/** The refusal of a request whose key is missing, repeated or malformed. */
export const invalidKey = (): Problem =>
  invalid('invalid idempotency key', {
    field: 'Idempotency-Key',
    expected: '8 to 128 visible ASCII characters',
  })

/** The one Idempotency-Key of a request, or null when it is missing, repeated or malformed. */
export function idempotencyKey(request: FastifyRequest): string | null {
  const lines = request.raw.headersDistinct['idempotency-key']
  const key = lines?.length === 1 ? lines[0] : undefined
  return key !== undefined && isIdempotencyKey(key) ? key : null
}
