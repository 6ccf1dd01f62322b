/** The line above an open capability: its name and where it is saved, with the ways to save and to close it. */
import { button, confirmed, toast } from '../components.ts'
import { type Child, el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { downloadCapability, type Held, type OpenHere, openHere, whatIsOpen } from './capability.ts'
import { forget, keep, MAX_NAME_CHARS, nameOfKept, rename } from './keeping.ts'
import { planTitle } from './terms.ts'

export type KeepingOptions = {
  /** What the capability opens, with an article: `an inbox`. */
  what: string
  /** Closes the capability in this tab. */
  close(): void
}

export function keepingOf(here: OpenHere, options: KeepingOptions): HTMLElement {
  const { isSaved, capability, planId } = here
  const held: Held = { capability, ...(planId === undefined ? {} : { planId }) }
  const { publicId, product } = capability
  const name = nameOfKept(publicId)

  /** Saves the capability, and shows the line anew. */
  function save(by: (held: Held) => void): void {
    try {
      by(held)
    } catch {
      toast('This browser could not keep it: its storage is full or switched off. Download it.')
      return
    }
    const saved = { ...held, isSaved: true }
    openHere(saved)
    line.replaceWith(keepingOf(saved, options))
  }

  async function forgetIt(): Promise<void> {
    const isWanted = await confirmed('Forget it in this browser?', {
      body: 'Without its capability file nobody can open it again.',
      action: 'Forget it',
    })
    if (!isWanted) return
    forget(publicId)
    options.close()
  }

  async function openAnother(): Promise<void> {
    const isLost = whatIsOpen(product)?.isSaved === false
    const question = {
      body: 'Its access key is only in this tab, and nobody can recover it. Keep or download it first.',
      action: 'Lose it',
    }
    if (isLost && !(await confirmed(`Close ${options.what} that is not saved?`, question))) return
    options.close()
  }

  const download = button('Download', () => save(downloadCapability), { kind: 'small' })
  const another = button('Open another', openAnother, { kind: 'small' })
  const line =
    isSaved || name !== null
      ? el(
          'div',
          { class: 'row between keeping' },
          name === null
            ? el('p', { class: 'small quiet' }, 'Open in this tab. Closing the tab closes it.')
            : namePart({ name, plan: planTitle(planId), publicId }),
          el(
            'div',
            { class: 'row' },
            name === null
              ? button('Keep in this browser', () => save(keep), { kind: 'small' })
              : button('Forget it here', forgetIt, { kind: 'small' }),
            download,
            another,
          ),
        )
      : el(
          'div',
          { class: 'notice warn row between keeping' },
          el('p', {}, 'Not saved. Closing this tab loses access for good.'),
          el(
            'div',
            { class: 'row' },
            button('Keep in this browser', () => save(keep), { kind: 'small primary' }),
            download,
            another,
          ),
        )
  return line
}

/** The name of a kept capability, which its owner may change. */
function namePart({
  name,
  plan,
  publicId,
}: {
  name: string
  plan: string
  publicId: string
}): HTMLElement {
  const part = el('div', { class: 'row named' })
  const show = (): void =>
    fill(
      part,
      el('strong', { dir: 'auto' }, plainly(nameOfKept(publicId) ?? name)),
      el('span', { class: 'small quiet' }, plan === '' ? 'kept here' : `${plan} · kept here`),
      button('Rename', ask, { kind: 'small' }),
    )

  function ask(): void {
    const input = el('input', {
      type: 'text',
      'aria-label': 'Name',
      maxlength: String(MAX_NAME_CHARS),
      autocomplete: 'off',
      onkeydown: (event) => {
        if ((event as KeyboardEvent).key === 'Escape') show()
      },
    })
    input.value = nameOfKept(publicId) ?? name
    const submitted = (event: Event): void => {
      event.preventDefault()
      rename(publicId, input.value)
      show()
      part.querySelector('button')?.focus()
    }
    fill(part, form(submitted, input, el('button', { class: 'button small' }, 'Save the name')))
    input.select()
  }

  show()
  return part
}

function form(onsubmit: (event: Event) => void, ...children: Child[]): HTMLElement {
  return el('form', { class: 'row', onsubmit }, ...children)
}
