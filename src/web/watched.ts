/** A connection to the service that tells how its live stream is doing. */
import { createHttp, type Http } from '../client/http.ts'
import { timedFetch } from './service.ts'

export type Connection = 'connecting' | 'live' | 'lost'

/** @param onChange is told each time that a stream opens or is lost. */
export function watchedService(onChange: (connection: Connection) => void): Http {
  const lost = (): void => onChange('lost')
  return createHttp(location.origin, async (input, init) => {
    const asked = timedFetch(input, init)
    if (!String(input).endsWith('/stream')) return asked
    try {
      const answer = await asked
      if (!answer.ok || !answer.body) return answer
      onChange('live')
      const reader = answer.body.getReader()
      const body = new ReadableStream<Uint8Array>({
        async pull(stream) {
          try {
            const { done, value } = await reader.read()
            if (!done) return stream.enqueue(value)
            lost()
            stream.close()
          } catch (error) {
            lost()
            stream.error(error)
          }
        },
        cancel: (reason) => reader.cancel(reason),
      })
      return new Response(body, { status: answer.status, headers: answer.headers })
    } catch (error) {
      lost()
      throw error
    }
  })
}
