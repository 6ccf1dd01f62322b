/** Tells of new requests while the user looks elsewhere: the title of the tab counts them, and notifications. */
import type { CatchEvent } from '../../client/index.ts'
import { button, toast } from '../components.ts'
import { plainly } from '../foreign.ts'

/** Requests that come in quick succession are one notification. */
const NOTIFY_EVERY_MS = 3_000
const MAX_PATH_CHARACTERS = 80

export type Attention = {
  /** Counts a new request, if nobody is looking. */
  arrived(event: CatchEvent): void
  /** Turns notifications on and off. Only a click asks the browser for its permission. */
  toggle: HTMLElement
}

export function createAttention(signal: AbortSignal): Attention {
  const { title } = document
  let unseen = 0
  let isOn = false
  let notifiedAt = Number.NEGATIVE_INFINITY
  const toggle = button('Notify me of new requests', change, { kind: 'small' })
  toggle.setAttribute('aria-pressed', 'false')

  const seen = (): void => {
    if (document.hidden) return
    unseen = 0
    document.title = title
  }
  document.addEventListener('visibilitychange', seen, { signal })
  signal.addEventListener('abort', () => {
    document.title = title
  })

  async function change(): Promise<void> {
    if (isOn) return show(false)
    if (!('Notification' in globalThis)) return toast('This browser has no notifications.')
    const isAllowed = (await Notification.requestPermission()) === 'granted'
    if (isAllowed) show(true)
    else toast("Notifications are blocked. Allow them in your browser's settings for this site.")
  }

  function show(isNowOn: boolean): void {
    isOn = isNowOn
    toggle.setAttribute('aria-pressed', String(isOn))
    toggle.textContent = isOn ? 'Stop notifying me' : 'Notify me of new requests'
  }

  /** Says no more of a request than its method and path. */
  function notify({ method, path }: CatchEvent): void {
    const now = performance.now()
    if (!isOn || now - notifiedAt < NOTIFY_EVERY_MS) return
    notifiedAt = now
    const shown = plainly((path || '/').slice(0, MAX_PATH_CHARACTERS))
    try {
      const more = unseen > 1 ? ` and ${unseen - 1} more` : ''
      // The same tag replaces the one before, so that they do not pile up.
      const note = new Notification(`${method} ${shown}${more}`, { tag: 'mayfly.inbox' })
      note.addEventListener('click', () => window.focus())
    } catch {
      // Some browsers on phones have them for installed pages alone.
      show(false)
      toast('This browser shows no notifications for pages.')
    }
  }

  return {
    toggle,
    arrived(event) {
      if (!document.hidden) return
      unseen++
      document.title = `(${unseen}) ${title}`
      notify(event)
    },
  }
}
