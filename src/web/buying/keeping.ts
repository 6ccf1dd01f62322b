/** The line above an open capability: where it is saved, with the ways to save and to close it. */
import type { AnyCapability } from '../../client/capability-file.ts'
import { button, confirmed } from '../components.ts'
import { el } from '../dom.ts'
import { downloadCapability } from './bought.ts'
import {
  forget,
  keep,
  keptCapabilities,
  type OpenHere,
  openHere,
  whatIsOpen,
} from './capability.ts'

export type KeepingOptions = {
  /** What the capability opens, with an article: `an inbox`. */
  what: string
  /** Closes the capability in this tab. */
  close(): void
}

export function keepingOf({ capability, isSaved }: OpenHere, options: KeepingOptions): HTMLElement {
  const isKept = keptCapabilities().some(({ publicId }) => publicId === capability.publicId)

  /** Saves the capability, and shows the line anew. */
  function save(by: (capability: AnyCapability) => void): void {
    by(capability)
    const here = { capability, isSaved: true }
    openHere(here)
    line.replaceWith(keepingOf(here, options))
  }

  async function forgetIt(): Promise<void> {
    const isWanted = await confirmed('Forget it in this browser?', {
      body: 'Without its capability file nobody can open it again.',
      action: 'Forget it',
    })
    if (!isWanted) return
    forget(capability.publicId)
    options.close()
  }

  async function openAnother(): Promise<void> {
    const isLost = whatIsOpen(capability.product)?.isSaved === false
    const question = {
      body: 'Its capability is in this tab alone, and nobody can recover it. Keep or download it first.',
      action: 'Lose it',
    }
    if (isLost && !(await confirmed(`Close ${options.what} that is saved nowhere?`, question)))
      return
    options.close()
  }

  const line = el(
    'div',
    { class: 'row between keeping' },
    el('p', { class: 'small quiet' }, placeOf({ isKept, isSaved })),
    el(
      'div',
      { class: 'row' },
      isKept
        ? button('Forget it here', forgetIt, { kind: 'small' })
        : button('Keep it in this browser', () => save(keep), { kind: 'small' }),
      button('Download', () => save(downloadCapability), { kind: 'small' }),
      button('Open another', openAnother, { kind: 'small' }),
    ),
  )
  return line
}

function placeOf({ isKept, isSaved }: { isKept: boolean; isSaved: boolean }): string {
  if (isKept) return 'Kept in this browser.'
  if (isSaved) return 'Open in this tab until it is closed.'
  return 'Only this tab has the capability: closing it loses it.'
}
