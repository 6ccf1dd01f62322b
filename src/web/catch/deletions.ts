/** Deletes requests a few seconds after they were hidden, so that the user can take it back. */
import { button } from '../components.ts'
import { byId, el } from '../dom.ts'

/** Long enough to read a short sentence twice, and to reach its button. */
const UNDO_MS = 6_000

export type Deletions = {
  /** Hides now, deletes later. `undone` shows it again. */
  start(doing: { remove: () => Promise<void>; undone: () => void }): void
  /** Takes back the last one that is still waiting. False if there is none. */
  undoLast(): boolean
}

export function createDeletions(signal: AbortSignal): Deletions {
  const waiting: (() => void)[] = []

  function start({ remove, undone }: { remove: () => Promise<void>; undone: () => void }): void {
    const undo = (): void => {
      end()
      undone()
    }
    const line = el(
      'p',
      { class: 'row between unwrapped' },
      'Deleting, unless you leave this page now.',
      button('Undo', undo, { kind: 'small' }),
    )
    const timer = setTimeout(() => {
      end()
      void remove()
    }, UNDO_MS)
    const end = (): void => {
      clearTimeout(timer)
      line.remove()
      const at = waiting.indexOf(undo)
      if (at !== -1) waiting.splice(at, 1)
    }
    waiting.push(undo)
    byId('toasts').append(line)
    signal.addEventListener('abort', end)
  }

  return {
    start,
    undoLast() {
      const undo = waiting.at(-1)
      undo?.()
      return undo !== undefined
    },
  }
}
