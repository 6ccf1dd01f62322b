/** Lists the scripts that can see a secret, with their addresses and digests. */
import { hex } from '../../lib/bytes.ts'
import { button } from '../components.ts'
import { el, fill } from '../dom.ts'

const FILES: [path: string, does: string][] = [
  ['protocol/whisper-envelope.js', 'makes the key, pads and encrypts'],
  ['protocol/whisper-code.js', 'writes the share code, with the key in it'],
  ['client/whisper.js', 'sends the encrypted bytes, and nothing else'],
  ['web/whisper/whisper.js', 'leads from the form to the code'],
  ['web/whisper/draft.js', 'has the text, the file and the password'],
  ['web/whisper/pending.js', 'stores the key in this tab until you have the code'],
  ['web/whisper/share.js', 'shows the code and the password'],
]

/** Fetches the scripts when the user opens the list. The browser has them in its cache. */
export function showFiles(details: HTMLDetailsElement, place: HTMLElement): void {
  const show = async (): Promise<void> => {
    try {
      const rows = await Promise.all(FILES.map(([path, does]) => fileRow(path, does)))
      fill(place, el('ul', { class: 'files' }, ...rows))
    } catch {
      fill(place, el('p', {}, 'The files could not be loaded.'), button('Try again', show))
    }
  }
  details.addEventListener('toggle', () => {
    if (details.open && place.childElementCount === 0) void show()
  })
}

async function fileRow(path: string, does: string): Promise<HTMLElement> {
  // This file lies in web/whisper/, two folders below the root of all modules.
  const { href, pathname } = new URL(`../../${path}`, import.meta.url)
  const bytes = await (await fetch(href)).arrayBuffer()
  const digest = hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
  return el(
    'li',
    {},
    el('a', { href: pathname }, path),
    ` ${does}.`,
    el('code', { class: 'digest' }, digest),
  )
}
