/** Shows one request of an inbox. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { eventBody } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { ContentView } from '../content/content-view.tsx'
import { isGzip } from '../content/media.ts'
import { PairsTable, Searched } from '../content/table.tsx'
import { encodingsOf, type Unpacked, unpack } from '../content/unpack.ts'
import { download } from '../lib/download.ts'
import { plainly } from '../lib/foreign.ts'
import { count, time, when } from '../lib/format.ts'
import { Button, Tabs } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Answer } from './answer.tsx'
import type { Inbox, TabName } from './model.ts'
import { Compare, Replay, Verify } from './tools.tsx'

/** A longer path would push the request out of sight, so it is cut. */
const MAX_TITLE_CHARACTERS = 120
/** Headers that known senders sign with. */
const SIGNED =
  /^(?:x-hub-signature-256|stripe-signature|x-slack-signature|x-shopify-hmac-sha256|(?:webhook|svix)-signature)$/i

/** @param event the one that is shown. */
export function EventView({ inbox, event }: { inbox: Inbox; event: CatchEvent }) {
  const { tab, events, client } = inbox
  const { method, headers, query, receivedAt, sequence, sourceIp, access } = event
  const path = event.path || '/'
  const isLong = path.length > MAX_TITLE_CHARACTERS
  const isSigned = headers.some(({ name }) => SIGNED.test(name))
  const titles: Record<TabName, ComponentChildren> = {
    Body: 'Body',
    Headers: `Headers (${count(headers.length)})`,
    Query: 'Query',
    Verify: ['Verify', isSigned && <span class="remark"> (signed)</span>],
    Replay: 'Replay',
    Compare: 'Compare',
    Answer: 'Answer',
  }
  const names = (Object.keys(titles) as TabName[]).filter(
    (name) => name !== 'Query' || query !== '',
  )
  const chosen = names.includes(tab.value) ? tab.value : 'Body'
  return (
    <article class="event" aria-labelledby="event-title">
      <header class="event-head">
        <span class="back">
          <Button icon="back" label="Back to the list" onClick={inbox.leaveDetail} />
        </span>
        <h2 id="event-title" tabIndex={-1}>
          <span class="method">{method}</span>{' '}
          {`${plainly(path.slice(0, MAX_TITLE_CHARACTERS))}${isLong ? '…' : ''}`}
        </h2>
        <p class="small quiet number event-facts">
          {access === 'authenticated' && <span class="badge good">authenticated</span>}{' '}
          <time dateTime={receivedAt} title={when(receivedAt)}>
            {time(receivedAt)}
          </time>{' '}
          <span>#{sequence}</span> <span>from {sourceIp}</span>
        </p>
        <div class="row event-actions">
          {event.bodyBytes > 0 && (
            <Button icon="download" label="Download body" onClick={() => save(event)} />
          )}
          <Button icon="trash" label="Delete" danger onClick={() => inbox.remove(event)} />
        </div>
      </header>
      <Searched.Provider value={(events.filter.value.q ?? '').toLowerCase()}>
        <Tabs
          label="The request"
          names={names}
          titles={titles}
          chosen={chosen}
          onChoose={(next) => {
            tab.value = next
          }}
        >
          {chosen === 'Body' && <Body event={event} />}
          {chosen === 'Headers' && <Headers event={event} isLongPath={isLong} />}
          {chosen === 'Query' && (
            <PairsTable label="Query" pairs={[...new URLSearchParams(query)]} />
          )}
          {chosen === 'Verify' && <Verify key={event.id} event={event} />}
          {chosen === 'Replay' && <Replay event={event} />}
          {chosen === 'Compare' && (
            <Compare key={event.id} event={event} others={events.shown.value} />
          )}
          {chosen === 'Answer' && <Answer inbox={client} />}
        </Tabs>
      </Searched.Provider>
    </article>
  )
}

function Body({ event }: { event: CatchEvent }) {
  const sent = useMemo(() => eventBody(event), [event])
  const encoding = contentEncoding(event) ?? (isGzip(sent) ? 'gzip' : null)
  if (event.bodyBytes === 0) return <p class="quiet">The request has no body.</p>
  const plain = { bytes: sent, contentType: event.contentType, label: 'Body' }
  if (encoding === null) return <ContentView key={event.id} content={plain} />
  return <UnpackedBody key={event.id} content={plain} encoding={encoding} />
}

function UnpackedBody({
  content,
  encoding,
}: {
  content: Parameters<typeof ContentView>[0]['content']
  encoding: string
}) {
  const [unpacked, setUnpacked] = useState<Unpacked | null>(null)
  useEffect(() => {
    unpack(content.bytes, encodingsOf(encoding)).then(setUnpacked, reportError)
  }, [content.bytes])
  if (unpacked === null) return <p class="quiet">Unpacking…</p>
  const { bytes, undone, remark } = unpacked
  const isUnpacked = undone.length > 0
  return (
    <>
      {isUnpacked && <p class="small quiet">Unpacked from {undone.join(' and ')}.</p>}
      {remark && <p class="small quiet">{remark}</p>}
      <ContentView
        content={{ ...content, bytes, ...(isUnpacked ? { sent: content.bytes } : {}) }}
      />
    </>
  )
}

function Headers({ event, isLongPath }: { event: CatchEvent; isLongPath: boolean }) {
  const { headers, path, ipLocation } = event
  const lines = (): string => headers.map(({ name, value }) => `${name}: ${value}\n`).join('')
  return (
    <>
      <div class="row">
        <CopyButton text={lines} weight="quiet">
          Copy headers
        </CopyButton>
      </div>
      {isLongPath && (
        <p class="long">
          <code>{plainly(path)}</code>
        </p>
      )}
      <PairsTable label="Headers" pairs={headers.map(({ name, value }) => [name, value])} />
      {ipLocation && <Origin place={ipLocation} />}
    </>
  )
}

function Origin({
  place: { city, country, source },
}: {
  place: NonNullable<CatchEvent['ipLocation']>
}) {
  const name = [city, country].filter((part) => part !== null).join(', ') || 'Unknown place'
  return (
    <p class="small quiet">
      {name}, guessed from the address ({source}).
    </p>
  )
}

function contentEncoding({ headers }: CatchEvent): string | null {
  const values = headers
    .filter(({ name }) => name.toLowerCase() === 'content-encoding')
    .map(({ value }) => value)
  return values.length === 0 ? null : values.join(',')
}

function save(event: CatchEvent): void {
  // The page only saves the body and never opens it, because a stranger sent it.
  download(`${event.id}.bin`, eventBody(event), 'application/octet-stream')
}
