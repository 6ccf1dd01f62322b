/**
 * A parser of server-sent events from fetch (WHATWG HTML §9.2.5 and §9.2.6), without `retry`: the service never sends it,
 * and a hostile one would have its client connect without a pause, for ever.
 */
import { chunksOf } from '../lib/bytes.ts'
import { MayflyError } from './errors.ts'

/** The maximum size of an event. The API never sends a longer one. */
const MAX_EVENT_CHARACTERS = 64 * 1024 * 1024
/** The server sends a comment every 15 seconds, so a stream silent for this long is lost. */
const SILENCE_MS = 45_000

export type StreamEvent = { event: string; data: string }

export type EventParser = ReturnType<typeof createEventParser>

export function createEventParser({ maxCharacters = MAX_EVENT_CHARACTERS } = {}) {
  // Replaces invalid UTF-8, and joins characters that are split between chunks. A leading BOM is
  // dropped below: Node's decoder would drop a second one too if the first one is split.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let isFirst = true
  const lineEnd = /\r\n?|\n/g
  /** The beginning of an incomplete line. */
  let partial = ''
  /** Whether the last line ended in CR. A following LF belongs to that line end. */
  let endedInCr = false
  let event = ''
  let data: string[] = []
  let dataCharacters = 0
  let id = ''
  let lastEventId = ''

  /** The events that these bytes complete, in order. @throws MayflyError for an event longer than the limit. */
  function push(bytes: Uint8Array): StreamEvent[] {
    const events: StreamEvent[] = []
    const text = decoder.decode(bytes, { stream: true })
    if (text === '') return events
    let from = (endedInCr && text[0] === '\n') || (isFirst && text[0] === '\ufeff') ? 1 : 0
    isFirst = false
    endedInCr = false
    lineEnd.lastIndex = from
    for (let end = lineEnd.exec(text); end; end = lineEnd.exec(text)) {
      const line = partial + text.slice(from, end.index)
      partial = ''
      from = lineEnd.lastIndex
      endedInCr = end[0] === '\r' && from === text.length
      if (line === '') dispatch(events)
      else take(line)
    }
    partial += text.slice(from)
    refuseTooLong(partial.length)
    return events
  }

  function take(line: string): void {
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    switch (name) {
      case 'event':
        event = value
        break
      case 'data':
        data.push(value)
        dataCharacters += value.length + 1
        refuseTooLong(0)
        break
      case 'id':
        if (!value.includes('\0')) id = value
        break
    }
  }

  function dispatch(events: StreamEvent[]): void {
    lastEventId = id
    if (data.length > 0) events.push({ event: event || 'message', data: data.join('\n') })
    event = ''
    data = []
    dataCharacters = 0
  }

  function refuseTooLong(more: number): void {
    if (dataCharacters + more > maxCharacters) throw new MayflyError('unexpected answer', 200)
  }

  return {
    push,
    /** The last `id` of a complete block, or "" without one. A reconnection sends it. */
    lastEventId: () => lastEventId,
  }
}

/**
 * Yields the events of a body until it ends. An incomplete last event is dropped, as the standard
 * demands. Rejects if the connection is lost or silent for too long.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  parser: EventParser,
): AsyncGenerator<StreamEvent, void, undefined> {
  for await (const part of chunksOf(body, inTime)) yield* parser.push(part)
}

function inTime<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the stream fell silent')), SILENCE_MS)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
