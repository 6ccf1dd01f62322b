/** The dialog that downloads all requests of an inbox. */
import type { CatchClient } from '../../client/catch.ts'
import { button, download, showDialog } from '../components.ts'
import { el, fill } from '../dom.ts'
import { bytes, count, sentence } from '../format.ts'
import { type ExportFormat, type ExportProgress, exportFile } from './export-file.ts'

const TYPES: Record<ExportFormat, { ending: string; type: string; what: string }> = {
  HAR: { ending: 'har', type: 'application/json', what: 'for browsers and proxies' },
  NDJSON: {
    ending: 'ndjson',
    type: 'application/x-ndjson',
    what: 'each request as the interface shows it, one per line',
  },
}
const FORMATS = Object.keys(TYPES) as ExportFormat[]

export function showExport({
  inbox,
  ingestUrl,
  publicId,
  signal,
}: {
  inbox: Pick<CatchClient, 'page'>
  ingestUrl: string
  publicId: string
  /** Aborted when the inbox is closed. */
  signal: AbortSignal
}): void {
  const closing = new AbortController()
  const shown = el('div', { class: 'stack', role: 'status' })
  const choices = el(
    'div',
    { class: 'stack' },
    ...FORMATS.map((format) =>
      el(
        'div',
        { class: 'row' },
        button(`Download as ${format}`, () => start(format), { kind: 'small' }),
        el('span', { class: 'small quiet' }, TYPES[format].what),
      ),
    ),
  )
  const close = showDialog(
    'Download all requests',
    [
      el('p', {}, 'All requests that the inbox keeps, oldest first, whatever the filter is.'),
      choices,
      shown,
      el(
        'div',
        { class: 'row' },
        button('Close', () => close()),
      ),
    ],
    () => closing.abort(),
  )

  async function start(format: ExportFormat): Promise<void> {
    choices.hidden = true
    const bar = el('progress', { 'aria-label': 'Progress', max: '1', value: '0' })
    const line = el('p', { class: 'number' }, 'Loading…')
    fill(shown, bar, line)
    const show = ({ requests, bytes: size, share }: ExportProgress): void => {
      bar.value = share
      line.textContent = `${said(requests)}, ${bytes(size)}`
    }
    const stopped = AbortSignal.any([signal, closing.signal])
    try {
      const file = await exportFile(inbox, {
        format,
        url: ingestUrl,
        signal: stopped,
        onProgress: show,
      })
      const { ending, type } = TYPES[format]
      if (file.requests > 0) download(`${publicId}.${ending}`, file.blob, type)
      fill(shown, el('p', {}, outcome(file)))
    } catch (error) {
      if (!stopped.aborted) fill(shown, el('p', {}, sentence(error)))
    }
    choices.hidden = false
  }
}

function outcome({ requests, isCut }: { requests: number; isCut: boolean }): string {
  if (requests === 0) return 'The inbox has no requests.'
  return isCut
    ? `The file has the first ${said(requests)}. More would be too much for a browser: mayfly catch export takes all.`
    : `The file has all ${said(requests)}.`
}

const said = (requests: number): string =>
  requests === 1 ? '1 request' : `${count(requests)} requests`
