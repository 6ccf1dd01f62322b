/** The dialog that downloads all requests of an inbox. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { download } from '../lib/download.ts'
import { bytes, plural, sentence } from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { type ExportFormat, type ExportProgress, exportFile } from './export-file.ts'
import type { Inbox } from './model.ts'

const TYPES: Record<ExportFormat, { ending: string; type: string; what: string }> = {
  HAR: { ending: 'har', type: 'application/json', what: 'for browsers and proxies' },
  NDJSON: {
    ending: 'ndjson',
    type: 'application/x-ndjson',
    what: 'one request per line',
  },
}
const FORMATS = Object.keys(TYPES) as ExportFormat[]

export function Export({ inbox, close }: { inbox: Inbox; close: () => void }) {
  const { client, ingestUrl, capability } = inbox
  const progress = useSignal<ExportProgress | null>(null)
  const said = useSignal('')
  const stop = useRef(new AbortController())
  useEffect(() => () => stop.current.abort(), [])

  async function start(format: ExportFormat): Promise<void> {
    progress.value = { requests: 0, bytes: 0, share: 0 }
    const { signal } = stop.current
    try {
      const onProgress = (next: ExportProgress): void => {
        progress.value = next
      }
      const file = await exportFile(client, { format, url: ingestUrl, signal, onProgress })
      const { ending, type } = TYPES[format]
      if (file.requests > 0) download(`${capability.publicId}.${ending}`, file.blob, type)
      said.value = outcome(file)
    } catch (error) {
      if (!signal.aborted) said.value = sentence(error)
    }
    progress.value = null
  }

  const shown = progress.value
  return (
    <>
      <p>Every stored request, oldest first, ignoring filters.</p>
      {shown === null ? (
        FORMATS.map((format) => (
          <div class="row" key={format}>
            <Button icon="download" onClick={() => start(format)}>{`Download as ${format}`}</Button>
            <span class="small quiet">{TYPES[format].what}</span>
          </div>
        ))
      ) : (
        <>
          <progress aria-label="Progress" max={1} value={shown.share} />
          <p class="number">{`${plural(shown.requests, 'request')}, ${bytes(shown.bytes)}`}</p>
        </>
      )}
      <p role="status">{said.value}</p>
      <div class="row">
        <Button onClick={close}>Close</Button>
      </div>
    </>
  )
}

function outcome({ requests, isCut }: { requests: number; isCut: boolean }): string {
  if (requests === 0) return 'The inbox has no requests.'
  return isCut
    ? `The file has the first ${plural(requests, 'request')}. A browser holds no more: use mayfly catch export.`
    : `The file has all ${plural(requests, 'request')}.`
}
