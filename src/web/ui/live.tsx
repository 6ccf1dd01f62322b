/** Whether what is open shows news at once. */
import { type Connection, isOnline } from '../lib/connection.ts'
import { State } from './ui.tsx'

export function LiveState({ connection }: { connection: Connection }) {
  switch (connection.state.value) {
    case 'connecting':
      return (
        <State kind="waiting" live>
          {/* As short as “Live”, so that nothing moves when it is. */}
          <span class="visually-hidden">Connecting</span>…
        </State>
      )
    case 'live':
      return (
        <State kind="good" live>
          Live
        </State>
      )
    case 'lost':
      return (
        <State kind="lost" live>
          {isOnline.value ? 'Connection lost. Retrying…' : 'You are offline. Waiting…'}
        </State>
      )
    case 'closed':
      return (
        <State kind="over" live>
          Closed
        </State>
      )
  }
}
