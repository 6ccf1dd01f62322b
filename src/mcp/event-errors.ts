/** The errors of MCP Events. Their codes are those of SEP-3415. */
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { Refusal } from './call.ts'
import { Ended, InvalidCursor } from './event-source.ts'

const CODES = {
  NotFound: -32023,
  Forbidden: -32024,
  ResourceExhausted: -32025,
  Unsupported: -32026,
}

const eventError = (name: keyof typeof CODES, data: object): ProtocolError =>
  new ProtocolError(CODES[name], name, data)

export const invalidParams = (reason: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, `invalid params. ${reason}.`)

export const unknownEvent = (): ProtocolError => eventError('NotFound', { kind: 'event' })

export const noWebhooks = (): ProtocolError =>
  eventError('Unsupported', { feature: 'deliveryMode', value: 'webhook' })

/** Whether a subscription has ended, or its token opens nothing any more. */
export const isOver = (error: unknown): boolean =>
  error instanceof Ended || (error instanceof Refusal && isForbidden(error.status))

/** Whether the same may be answered later. */
export const isBusy = (error: unknown): error is Refusal =>
  error instanceof Refusal && error.status === 429

/** What a caller is told of an error, or null: a bug of the service. */
export function eventErrorOf(error: unknown): ProtocolError | null {
  if (error instanceof ProtocolError) return error
  if (error instanceof InvalidCursor) return invalidParams('The service has not made this cursor')
  if (error instanceof Ended) return eventError('Forbidden', { reason: error.message })
  if (!(error instanceof Refusal)) return null
  const { status, retryAfterSeconds, message: reason } = error
  if (isForbidden(status)) return eventError('Forbidden', { reason })
  if (status === 429) {
    const retryAfterMs = (retryAfterSeconds ?? 1) * 1000
    return eventError('ResourceExhausted', { limit: 'requests', retryAfterMs, reason })
  }
  return status === 400 ? invalidParams(reason.replace(/\.$/, '')) : null
}

/** No token, one that opens nothing, or nothing of this id. */
const isForbidden = (status: number): boolean => [401, 403, 404].includes(status)
