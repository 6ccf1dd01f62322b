/** Server-sent events as fetch brings them (WHATWG HTML §9.2.5 and §9.2.6). */
import { MayflyError } from './errors.ts'

/** No event of the API is longer; a server that sends more is not ours. */
const MAX_EVENT_CHARACTERS = 64 * 1024 * 1024
/** The server sends at least a comment every 15 seconds: a stream this silent is lost. */
const SILENCE_MS = 45_000

export type StreamEvent = { event: string; data: string }

export type EventParser = {
  /**
   * The events that these bytes complete, in order.
   * @throws MayflyError for an event longer than the limit.
   */
  push(bytes: Uint8Array): StreamEvent[]
  /** What to resume after: the last `id` of a complete block, "" where there was none. */
  lastEventId(): string
  /** The pause before a reconnection that the server asked for, or null. */
  retryMs(): number | null
}

export function createEventParser({ maxCharacters = MAX_EVENT_CHARACTERS } = {}): EventParser {
  // Replaces what is no UTF-8 and keeps a character whose bytes are split. The one BOM that may lead
  // is dropped here: Node's decoder drops a second one too where the first comes in pieces.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let isFirst = true
  const lineEnd = /\r\n?|\n/g
  /** A line whose end has not come yet. */
  let partial = ''
  /** The last line ended in CR: an LF right after it belongs to that end. */
  let endedInCr = false
  let event = ''
  let data: string[] = []
  let dataCharacters = 0
  let id = ''
  let lastEventId = ''
  let retryMs: number | null = null

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
      case 'retry':
        if (/^[0-9]{1,9}$/.test(value)) retryMs = Number(value)
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

  return { push, lastEventId: () => lastEventId, retryMs: () => retryMs }
}

/**
 * The events of a body until it ends; one that is not complete by then is dropped, as the standard
 * has it. Rejects when the connection is lost, or silent for too long.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  parser: EventParser,
): AsyncGenerator<StreamEvent, void, undefined> {
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read())
      if (done) return
      yield* parser.push(value)
    }
  } finally {
    // Not waited for: a lost connection may never say that it is closed.
    reader.cancel().catch(() => undefined)
  }
}

function inTime<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the stream fell silent')), SILENCE_MS)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
