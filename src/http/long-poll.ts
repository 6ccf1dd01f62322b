/** A request that is answered when there is news, or when its time is over. It holds nothing meanwhile. */
import type { ServerResponse } from 'node:http'
import { createNews } from './news.ts'

export type LongPoll = {
  /** Whether to go on waiting: there is time left, the client is there, and the server does not stop. */
  isWaiting(): boolean
  /** Waits for `wake`, but at most this long, and no longer than `isWaiting`. */
  wait(ms: number): Promise<void>
  /** Ends the current or the next `wait`. */
  wake(): void
  /** Ends the waiting. The request is then answered as if its time were over. */
  end(): void
}

/** @param ms how long the request waits at most. */
export function createLongPoll(response: ServerResponse, ms: number): LongPoll {
  let isOver = false
  const isWaiting = (): boolean => !isOver && !response.destroyed
  const { wait, wake } = createNews(isWaiting)
  const timer = setTimeout(end, ms)
  response.once('close', end)
  if (response.destroyed) end()

  function end(): void {
    isOver = true
    clearTimeout(timer)
    wake()
  }

  return { isWaiting, wait, wake, end }
}
