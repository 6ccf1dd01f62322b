/** A loopback proxy whose test answers some requests itself, or lets them hang. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { After } from './folder.ts'
import { answerWith, passOn, serve } from './serving.ts'

/** Answers a request, or returns false to pass it on. */
type Answering = (path: string, response: ServerResponse, incoming: IncomingMessage) => boolean

/** Starts the proxy in front of a server. */
export function between(t: After, upstream: string, answering: Answering): Promise<string> {
  return serve(t, async (incoming, response) => {
    if (answering(incoming.url ?? '/', response, incoming)) return
    try {
      answerWith(response, await passOn(upstream, incoming))
    } catch {
      response.destroy()
    }
  })
}
