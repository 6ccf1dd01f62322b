/** The live stream of what is open: whether it is connected, in a signal. */
import { signal } from '@preact/signals'
import { createHttp } from '../../client/http.ts'
import { sentence } from './format.ts'
import { timedFetch } from './service.ts'

export type Connection = ReturnType<typeof createConnection>

export function createConnection() {
  const state = signal<'connecting' | 'live' | 'lost' | 'closed'>('connecting')
  const problem = signal<string | null>(null)
  const http = createHttp(location.origin, async (input, init) => {
    const answer = timedFetch(input, init)
    return String(input).endsWith('/stream') ? watched(answer) : answer
  })

  /** Returns the same answer, and notes when its stream opens and ends. */
  async function watched(answering: Promise<Response>): Promise<Response> {
    try {
      const answer = await answering
      if (!answer.ok || !answer.body) return answer
      state.value = 'live'
      const reader = answer.body.getReader()
      const body = new ReadableStream<Uint8Array>({
        async pull(stream) {
          try {
            const { done, value } = await reader.read()
            if (!done) return stream.enqueue(value)
            state.value = 'lost'
            stream.close()
          } catch (error) {
            state.value = 'lost'
            stream.error(error)
          }
        },
        cancel: (reason) => reader.cancel(reason),
      })
      return new Response(body, { status: answer.status, headers: answer.headers })
    } catch (error) {
      state.value = 'lost'
      throw error
    }
  }

  return {
    http,
    state,
    /** Why the stream has ended, if nobody wanted that. */
    problem,
    /** Follows a stream until it ends, fails or is aborted. Resolves to whether the service has ended it. */
    async follow<Item>(
      items: AsyncIterable<Item>,
      onItem: (item: Item) => void,
      stop: AbortSignal,
    ): Promise<boolean> {
      problem.value = null
      try {
        for await (const item of items) onItem(item)
        if (!stop.aborted) state.value = 'closed'
        return !stop.aborted
      } catch (error) {
        if (stop.aborted) return false
        state.value = 'closed'
        problem.value = sentence(error)
        return false
      }
    },
  }
}

/** Whether this browser has a network, in a signal. */
export const isOnline = signal(globalThis.navigator?.onLine !== false)
globalThis.addEventListener?.('online', () => {
  isOnline.value = true
})
globalThis.addEventListener?.('offline', () => {
  isOnline.value = false
})
