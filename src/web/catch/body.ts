/** Shows the body of a request. */
import { eventBody } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { el } from '../dom.ts'
import { showLate } from '../late.ts'
import { contentView } from './content/content-view.ts'
import { isGzip } from './content/media.ts'

/** The body in all of its forms, unpacked if its sender has packed it. */
export function bodyView(event: CatchEvent): HTMLElement {
  const { contentType } = event
  const sent = eventBody(event)
  const encoding = contentEncoding(event) ?? (isGzip(sent) ? 'gzip' : null)
  const plain = { bytes: sent, contentType, label: 'Body', depth: 0 }
  if (encoding === null) return contentView(plain)
  return showLate(async () => {
    const { encodingsOf, unpack } = await import('./content/unpack.ts')
    const { bytes, undone, remark } = await unpack(sent, encodingsOf(encoding))
    const isUnpacked = undone.length > 0
    return el(
      'div',
      { class: 'stack' },
      isUnpacked && el('p', { class: 'small quiet' }, `Unpacked from ${undone.join(' and ')}.`),
      remark && el('p', { class: 'small quiet' }, remark),
      contentView({ ...plain, bytes, ...(isUnpacked ? { sent } : {}) }),
    )
  })
}

function contentEncoding({ headers }: CatchEvent): string | null {
  const values = headers
    .filter(({ name }) => name.toLowerCase() === 'content-encoding')
    .map(({ value }) => value)
  return values.length === 0 ? null : values.join(',')
}
