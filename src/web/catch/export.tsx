/** The dialog that downloads all requests of an inbox. */
import { useEffect, useRef, useState } from 'preact/hooks'
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
  const [progress, setProgress] = useState<ExportProgress | null>(null)
  const [said, say] = useState('')
  const stop = useRef(new AbortController())
  useEffect(() => () => stop.current.abort(), [])

  async function start(format: ExportFormat): Promise<void> {
    setProgress({ requests: 0, bytes: 0, share: 0 })
    const { signal } = stop.current
    try {
      const asked = { format, url: ingestUrl, signal, onProgress: setProgress }
      const file = await exportFile(client, asked)
      const { ending, type } = TYPES[format]
      if (file.requests > 0) download(`${capability.publicId}.${ending}`, file.blob, type)
      say(outcome(file))
    } catch (error) {
      if (!signal.aborted) say(sentence(error))
    }
    setProgress(null)
  }

  return (
    <>
      <p>Every stored request, oldest first, ignoring filters.</p>
      {progress === null ? (
        FORMATS.map((format) => (
          <div class="row" key={format}>
            <Button icon="download" onClick={() => start(format)}>{`Download as ${format}`}</Button>
            <span class="small quiet">{TYPES[format].what}</span>
          </div>
        ))
      ) : (
        <>
          <progress aria-label="Progress" max={1} value={progress.share} />
          <p class="number">{`${plural(progress.requests, 'request')}, ${bytes(progress.bytes)}`}</p>
        </>
      )}
      <p role="status">{said}</p>
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
