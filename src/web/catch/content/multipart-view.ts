/** Shows the parts of a multipart body, each like a body of its own. */
import { button, download } from '../../components.ts'
import { el } from '../../dom.ts'
import { plainly } from '../../foreign.ts'
import { bytes, count } from '../../format.ts'
import { disclosure } from '../../late.ts'
import type { Content } from './content.ts'
import { mediaOf } from './media.ts'
import { multipartOf, type Part } from './multipart.ts'
import { pairsTable } from './table.ts'

/** A form with more parts opens folded. */
const MAX_OPEN_PARTS = 5
const MAX_OPEN_BYTES = 256 * 1024
const MAX_NAME_CHARACTERS = 120

export function multipartView(
  content: Content,
  /** Shows the content of a part, which may have parts again. */
  show: (content: Content) => HTMLElement,
): HTMLElement {
  const { parameters } = mediaOf(content.contentType)
  const multipart = multipartOf(content.bytes, parameters.get('boundary'))
  if (!multipart) {
    return el('p', {}, 'It has no parts that its Content-Type would divide. Text and Hex show it.')
  }
  const { parts, remark } = multipart
  return el(
    'div',
    { class: 'stack' },
    remark && el('p', { class: 'small quiet' }, remark),
    ...parts.map((part, index) =>
      disclosure(titleOf(part, index), async () => partView(part, { index, content, show }), {
        kind: 'part',
        isOpen: parts.length <= MAX_OPEN_PARTS && part.bytes.length <= MAX_OPEN_BYTES,
      }),
    ),
  )
}

function titleOf({ name, filename, contentType, bytes: { length } }: Part, index: number): string {
  const names = [
    name,
    filename === null ? null : `file ${filename || 'without a name'}`,
    contentType,
  ]
  const shown = names.filter((each) => each !== null).map((each) => plainly(cut(each)))
  return [`Part ${count(index + 1)}`, ...shown, bytes(length)].join(' · ')
}

function partView(
  part: Part,
  {
    index,
    content,
    show,
  }: { index: number; content: Content; show: (content: Content) => HTMLElement },
): HTMLElement {
  const label = `Part ${index + 1}`
  return el(
    'div',
    { class: 'stack' },
    part.bytes.length === 0
      ? el('p', { class: 'quiet' }, 'Empty.')
      : show({
          bytes: part.bytes,
          // A field of a form is text if it does not say more (RFC 7578 §4.4).
          contentType: part.contentType ?? 'text/plain',
          label,
          depth: content.depth + 1,
        }),
    pairsTable(
      `Headers of part ${index + 1}`,
      part.headers.map(({ name, value }) => [name, value] as const),
    ),
    part.bytes.length > 0 &&
      button(
        `Download part ${index + 1}`,
        // Under a name of our own: a stranger's could end like a program.
        () => download(`part-${index + 1}.bin`, part.bytes, 'application/octet-stream'),
        { kind: 'small' },
      ),
  )
}

const cut = (text: string): string =>
  text.length > MAX_NAME_CHARACTERS ? `${text.slice(0, MAX_NAME_CHARACTERS)}…` : text
