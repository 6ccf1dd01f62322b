/** Writes all requests of an inbox into one file, page after page, without holding them all. */
import type { CatchClient } from '../../client/catch.ts'
import { HAR_BETWEEN, HAR_END, HAR_START, harEntry, toJsonLines } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { utf8 } from '../../lib/bytes.ts'

export type ExportFormat = 'HAR' | 'NDJSON'

/** `isCut` says that the file is as large as it may be, and that there are more requests. */
export type ExportedFile = { blob: Blob; requests: number; isCut: boolean }

export type ExportProgress = { requests: number; bytes: number; share: number }

/** Browsers move larger blobs to the disk, and phones have little of that. */
const MAX_EXPORT_BYTES = 256 * 1024 * 1024
const EVENTS_A_PAGE = 50
/** A service that is busy for longer has a fault, which its error tells. */
const PATIENCE_MS = 5 * 60_000

export async function exportFile(
  inbox: Pick<CatchClient, 'page'>,
  {
    format,
    url,
    signal,
    onProgress,
    maxBytes = MAX_EXPORT_BYTES,
  }: {
    format: ExportFormat
    /** The address of the inbox, for HAR. */
    url: string
    signal: AbortSignal
    onProgress: (progress: ExportProgress) => void
    maxBytes?: number
  },
): Promise<ExportedFile> {
  const patiently = { signal, timeoutMs: PATIENCE_MS }
  const { latestSequence: end } = await inbox.page({ limit: 1 }, patiently)
  const parts: Blob[] = []
  let requests = 0
  let bytes = 0
  let isCut = false
  for (let after = 0; after < end && !isCut; ) {
    const page = await inbox.page({ after, limit: EVENTS_A_PAGE }, patiently)
    // A request that came after the start is not counted in the progress.
    const events = page.events.filter(({ sequence }) => sequence <= end)
    const texts: string[] = []
    for (const event of events) {
      const text = pieceOf(event, { format, url, isFirst: requests === 0 })
      bytes += utf8(text).length
      isCut = bytes > maxBytes
      if (isCut) break
      texts.push(text)
      requests++
    }
    // The browser keeps a blob outside of the memory of the page.
    parts.push(new Blob(texts))
    after = events.length < page.events.length ? end : (events.at(-1)?.sequence ?? end)
    onProgress({ requests, bytes, share: after / end })
  }
  const framed = format === 'HAR' ? [HAR_START, ...parts, HAR_END] : parts
  return { blob: new Blob(framed), requests, isCut }
}

function pieceOf(
  event: CatchEvent,
  { format, url, isFirst }: { format: ExportFormat; url: string; isFirst: boolean },
): string {
  if (format === 'NDJSON') return toJsonLines([event])
  return `${isFirst ? '' : HAR_BETWEEN}${harEntry(event, url)}`
}
