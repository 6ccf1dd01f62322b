/** Tells of new requests while the person looks elsewhere: the title of the tab counts them, and notifications. */
import { signal } from '@preact/signals'
import type { CatchEvent } from '../../client/index.ts'
import { plainly } from '../lib/foreign.ts'
import { toast } from '../ui/overlay.tsx'

/** Requests that come in quick succession are one notification. */
const NOTIFY_EVERY_MS = 3_000
const MAX_PATH_CHARACTERS = 80

export type Attention = ReturnType<typeof createAttention>

export function createAttention(signal_: AbortSignal) {
  const { title } = document
  const isOn = signal(false)
  let unseen = 0
  let notifiedAt = Number.NEGATIVE_INFINITY

  const seen = (): void => {
    if (document.hidden) return
    unseen = 0
    document.title = title
  }
  document.addEventListener('visibilitychange', seen, { signal: signal_ })
  signal_.addEventListener('abort', () => {
    document.title = title
  })

  /** Says no more of a request than its method and path. */
  function notify({ method, path }: CatchEvent): void {
    const now = performance.now()
    if (!isOn.value || now - notifiedAt < NOTIFY_EVERY_MS) return
    notifiedAt = now
    const shown = plainly((path || '/').slice(0, MAX_PATH_CHARACTERS))
    try {
      const more = unseen > 1 ? ` and ${unseen - 1} more` : ''
      // The same tag replaces the one before, so that they do not pile up.
      const note = new Notification(`${method} ${shown}${more}`, { tag: 'mayfly.inbox' })
      note.addEventListener('click', () => window.focus())
    } catch {
      // Some browsers on phones have them for installed pages alone.
      isOn.value = false
      toast('This browser shows no notifications for pages.')
    }
  }

  return {
    isOn,
    /** Only a press asks the browser for its permission. */
    async toggle(): Promise<void> {
      if (isOn.value) {
        isOn.value = false
        return
      }
      if (!('Notification' in globalThis)) return toast('This browser has no notifications.')
      isOn.value = (await Notification.requestPermission()) === 'granted'
      if (!isOn.value) toast('Notifications are blocked. Allow them in your browser for this site.')
    },
    /** Counts a new request, if nobody is looking. */
    arrived(event: CatchEvent): void {
      if (!document.hidden) return
      unseen++
      document.title = `(${unseen}) ${title}`
      notify(event)
    },
  }
}
