/** `Expect: 100-continue` (RFC 9110 §10.1.1): a client that asks before it sends the body. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Requests whose client waits for `100 Continue`, until that has been sent. */
const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Notes that the client waits before it sends the body. If the request is answered without a
 * `100 Continue`, the connection closes, because the body may or may not follow.
 */
export function deferContinue(request: IncomingMessage, response: ServerResponse): void {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (coding === undefined && Number(length ?? 0) === 0) return
  waiting.set(request, response)
  response.shouldKeepAlive = false
}

export function isWaitingForContinue(request: IncomingMessage): boolean {
  return waiting.has(request)
}

/** Sends `100 Continue`, if the client waits for it. */
export function sendContinue(request: IncomingMessage): void {
  const response = waiting.get(request)
  if (!response) return
  waiting.delete(request)
  response.shouldKeepAlive = !/\bclose\b/i.test(request.headers.connection ?? '')
  response.writeContinue()
}
