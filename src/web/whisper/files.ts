/** Names the script that can see a secret, with its address, its digest and its sources. */
import { hex } from '../../lib/bytes.ts'
import { button } from '../components.ts'
import { el, fill } from '../dom.ts'

const SOURCES: [path: string, does: string][] = [
  ['protocol/whisper-envelope.ts', 'makes the key, pads and encrypts'],
  ['protocol/whisper-code.ts', 'writes the share code, with the key in it'],
  ['client/whisper.ts', 'sends the encrypted bytes, and nothing else'],
  ['web/whisper/whisper.ts', 'leads from the form to the code'],
  ['web/whisper/draft.ts', 'has the text, the file and the password'],
  ['web/whisper/pending.ts', 'stores the key in this tab until you have the code'],
  ['web/whisper/share.ts', 'shows the code and the password'],
]

/** Fetches the script when the user opens the list. The browser has it in its cache. */
export function showFiles(details: HTMLDetailsElement, place: HTMLElement): void {
  const show = async (): Promise<void> => {
    try {
      fill(place, ...(await script()))
    } catch {
      fill(place, el('p', {}, 'The script could not be loaded.'), button('Try again', show))
    }
  }
  details.addEventListener('toggle', () => {
    if (details.open && place.childElementCount === 0) void show()
  })
}

async function script(): Promise<HTMLElement[]> {
  // This file is bundled into the one script of the page.
  const { href, pathname } = new URL(import.meta.url)
  const bytes = await (await fetch(href)).arrayBuffer()
  const digest = hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
  return [
    el('p', {}, 'This page runs one script:'),
    el('p', {}, el('a', { href: pathname }, pathname), el('code', { class: 'digest' }, digest)),
    el('p', {}, 'It is readable. These files of it see the secret:'),
    el(
      'ul',
      { class: 'files' },
      ...SOURCES.map(([path, does]) => el('li', {}, el('code', {}, path), ` ${does}.`)),
    ),
  ]
}
