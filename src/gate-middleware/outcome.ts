/**
 * How the run of a handler ended, in both forms. It failed if it threw, or if a 5xx was passed on whole to a client that
 * was there. A client that leaves has spent its receipt: the handler goes on, and may have done its work.
 */
import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import type { Admission } from './visit.ts'

export type NodeResponse = ServerResponse | Http2ServerResponse

/** Whether the client has left before the end of the answer. */
export const hasLeft = (response: NodeResponse): boolean =>
  isHttp2(response) ? isCut(response) : response.destroyed || response.socket?.destroyed === true

/** Reports the outcome of a handler that writes to Node's response. What comes after the first report has no effect. */
export function watchResponse(response: NodeResponse, { spent, failed }: Admission): void {
  // It may have closed while the receipt was noted, and then no event follows.
  if (hasLeft(response)) spent()
  response.on('finish', () => {
    // HTTP/2 finishes an answer also if its client has cut it.
    if (response.statusCode >= 500 && !(isHttp2(response) && isCut(response))) void failed()
    else spent()
  })
  response.on('close', spent)
}

const isHttp2 = (response: NodeResponse): response is Http2ServerResponse => 'stream' in response

const isCut = ({ stream }: Http2ServerResponse): boolean => (stream.rstCode ?? 0) !== 0

/** Runs a fetch-style handler and reports its outcome. */
export async function runHandler(
  run: () => Response | Promise<Response>,
  { signal }: { signal: AbortSignal },
  { headers, spent, failed }: Admission,
): Promise<Response> {
  if (signal.aborted) spent()
  // Node keeps this listener for as long as the handler's request, so it must not lead to that.
  signal.addEventListener('abort', () => spent(), { once: true })
  try {
    const response = await run()
    const { status, body } = response
    const isWatched = status >= 500 && body !== null
    const passedOn = isWatched ? observed(body, { onEnd: () => void failed(), onCut: spent }) : body
    // Throws for a body that was read before, and for `Response.error()`.
    const answer = new Response(passedOn, response)
    for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value)
    if (!isWatched) void (status >= 500 ? failed() : spent())
    return answer
  } catch (error) {
    await failed()
    throw error
  }
}

/** Passes the same bytes on, and reports whether they were all read. */
function observed(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  { onEnd, onCut }: { onEnd: () => void; onCut: () => void },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          controller.close()
          onEnd()
        } catch (error) {
          onCut()
          controller.error(error)
        }
      },
      async cancel(reason) {
        onCut()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
