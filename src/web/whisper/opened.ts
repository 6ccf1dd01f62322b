/** Shows the content of a whisper: text as text, anything else as a download. Its sender is a stranger. */
import { utf8Text } from '../../lib/bytes.ts'
import type { OpenedWhisper } from '../../protocol/whisper-envelope.ts'
import { button, copyButton, download } from '../components.ts'
import { el } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { bytes } from '../format.ts'

/** Only this much is drawn. The download has all of the content. */
const MAX_SHOWN_CHARACTERS = 200_000
const TEXT = /^(?:text\/|application\/(?:json|xml|yaml|toml)\b)/

export function contentView({ data, name, mediaType }: OpenedWhisper): HTMLElement {
  const isText = mediaType === null ? name === null : TEXT.test(mediaType)
  const text = isText ? utf8Text(data) : null
  const isCut = text !== null && text.length > MAX_SHOWN_CHARACTERS
  return el(
    'div',
    { class: 'card stack' },
    el(
      'h2',
      { tabindex: '-1', id: 'step', dir: 'auto' },
      name === null ? 'The whisper' : plainly(name),
    ),
    el(
      'p',
      { class: 'small quiet' },
      `${bytes(data.length)}${mediaType === null ? '' : `, which its sender calls ${mediaType}`}. One read was used. This tab has the only copy.`,
    ),
    text === null
      ? el(
          'p',
          {},
          'Files are not shown here. Download it, and open it with care, like any file from somebody else.',
        )
      : el(
          'pre',
          { class: 'content', dir: 'auto', tabindex: '0', role: 'group', 'aria-label': 'The text' },
          isCut
            ? `${plainly(text.slice(0, MAX_SHOWN_CHARACTERS))}\n… the rest is in the download`
            : plainly(text),
        ),
    el(
      'div',
      { class: 'row even' },
      text !== null && copyButton(() => text, { label: 'Copy the text', kind: 'primary' }),
      button(
        'Download',
        () => {
          const ending = text === null ? 'bin' : 'txt'
          // The claimed type is ignored, because a browser might open such a file.
          download(name ?? `whisper.${ending}`, data, 'application/octet-stream')
        },
        { kind: text === null ? 'primary' : '' },
      ),
      el('a', { class: 'button', href: '/whisper' }, 'Write one yourself'),
    ),
  )
}
