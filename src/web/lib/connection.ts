/** The live stream of what is open: whether it is connected, and why it has failed. */
import { signal } from '@preact/signals'
import type { Following } from '../../client/live.ts'

export type Connection = ReturnType<typeof createConnection>

export function createConnection() {
  const state = signal<'connecting' | 'open' | 'lost' | 'ended'>('connecting')
  const error = signal<unknown>(null)
  return {
    state,
    error,
    /** Follows a stream until it ends, fails or is aborted. */
    async follow<Item>(
      open: (told: Required<Pick<Following, 'onConnection' | 'signal'>>) => AsyncIterable<Item>,
      onItem: (item: Item) => void,
      stop: AbortSignal,
    ): Promise<void> {
      const onConnection = (next: 'open' | 'lost'): void => {
        state.value = next
      }
      error.value = null
      try {
        for await (const item of open({ onConnection, signal: stop })) onItem(item)
      } catch (reason) {
        if (!stop.aborted) error.value = reason
      }
      state.value = 'ended'
    },
  }
}
