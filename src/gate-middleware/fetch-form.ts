/** The middleware for the platform's Request and Response. */
import { concat } from '../lib/bytes.ts'
import { type AnswerHeaders, isKept, MAX_STORED_BYTES } from './stored-answers.ts'
import type { Admission, Refused } from './visit.ts'

/** How long a body may take to end after its client left, if the answer is to be stored. */
const AFTER_CANCEL_MS = 60_000

/** Runs the handler and reports its outcome. */
export async function runHandler(
  run: () => Response | Promise<Response>,
  { signal }: { signal: AbortSignal },
  admission: Admission,
): Promise<Response> {
  const watched = watchClient(signal, admission)
  try {
    const response = await run()
    const body = watchBody(response, signal, watched)
    const answer = new Response(body, response)
    for (const [name, value] of Object.entries(admission.headers)) answer.headers.set(name, value)
    return answer
  } catch (error) {
    // A client that left did not see the failure, so its receipt is not given back.
    if (signal.aborted) watched.spent()
    else await watched.failed()
    throw error
  }
}

/** A client that leaves has spent its receipt, which is not given back: the handler continues. */
function watchClient(signal: AbortSignal, admission: Admission): Admission {
  const { wantsAnswer, spent, failed } = admission
  const left = (): void => spent()
  if (!wantsAnswer) signal.addEventListener('abort', left, { once: true })
  // Node keeps the signal of a request for as long as the handler's request, to which a listener leads.
  const forget = (): void => signal.removeEventListener('abort', left)
  return {
    ...admission,
    spent(answer) {
      forget()
      spent(answer)
    },
    failed() {
      forget()
      return failed()
    },
  }
}

export function refused({ status, headers, body }: Refused): Response {
  const fields = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    for (const line of [value].flat()) fields.append(name, line)
  }
  const isEmpty = status === 204 || status === 205
  return new Response(isEmpty ? null : typeof body === 'string' ? body : new Uint8Array(body), {
    status,
    headers: fields,
  })
}

/** The response's body, observed. */
function watchBody(
  response: Response,
  signal: AbortSignal,
  { spent, failed, wantsAnswer, headers }: Admission,
): ReadableStream<Uint8Array<ArrayBuffer>> | null {
  const { status, body } = response
  if (status >= 500) {
    if (body)
      return observed(body, {
        onEnd: () => (signal.aborted ? spent() : void failed()),
        onCut: spent,
      })
    if (signal.aborted) spent()
    else void failed()
    return null
  }
  if (!wantsAnswer || !isKept(status)) {
    spent()
    return body
  }
  const keep = (bytes: Uint8Array): void =>
    spent({ status, headers: { ...headersOf(response), ...headers }, body: bytes })
  if (!body) {
    keep(new Uint8Array())
    return null
  }
  const [sent, copy] = body.tee()
  const reader = copy.getReader()
  void readSmall(reader).then((bytes) => (bytes ? keep(bytes) : spent()))
  return observed(sent, {
    onEnd: () => {},
    // The copy is read to its end, so that the payer can fetch it again, but not forever.
    onCut: () =>
      void setTimeout(() => void reader.cancel().catch(() => {}), AFTER_CANCEL_MS).unref(),
  })
}

/** All of a small body, or null. The rest of a large one is cancelled. */
async function readSmall(
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return concat(...chunks)
      length += value.length
      if (length > MAX_STORED_BYTES) {
        reader.cancel().catch(() => {})
        return null
      }
      chunks.push(value)
    }
  } catch {
    return null
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

function headersOf({ headers }: Response): AnswerHeaders {
  const fields: AnswerHeaders = Object.fromEntries(headers)
  return fields
}
