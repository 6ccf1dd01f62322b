/** A deletion that can be taken back for a few seconds, and is sent in any case: also when the page is left. */
import { timedFetch } from '../lib/service.ts'
import { toast } from '../ui/overlay.tsx'

/** As long as its toast. */
const UNDO_MS = 5_000

type Doing = {
  path: string
  token: string
  /** Shows it again. */
  restore: () => void
  onDeleted: () => unknown
}

export function createDeletion(signal: AbortSignal) {
  let waiting: (Doing & { timer: ReturnType<typeof setTimeout> }) | null = null

  async function send(): Promise<void> {
    if (!waiting) return
    const { timer, path, token, restore, onDeleted } = waiting
    waiting = null
    clearTimeout(timer)
    try {
      const headers = { authorization: `Bearer ${token}` }
      // The browser sends it to the end, although the page may be gone by then.
      const answer = await timedFetch(path, { method: 'DELETE', headers, keepalive: true })
      if (answer.status !== 204 && answer.status !== 404) throw new Error(String(answer.status))
      onDeleted()
    } catch {
      restore()
      toast('The request could not be deleted. It is still there.')
    }
  }

  addEventListener('pagehide', () => void send(), { signal })
  signal.addEventListener('abort', () => void send())

  return {
    /** Hides are undone one at a time: another deletion sends the one before. */
    start(doing: Doing): void {
      void send()
      waiting = { ...doing, timer: setTimeout(() => void send(), UNDO_MS) }
      toast('Deleted.', { label: 'Undo', run: undo })
    },
  }

  function undo(): void {
    if (!waiting) return
    clearTimeout(waiting.timer)
    waiting.restore()
    waiting = null
  }
}
