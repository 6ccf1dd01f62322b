/** The page of an inbox: its address and limits, and its requests as they arrive. */
import './inbox.css'
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { createCatchClient } from '../../client/catch.ts'
import type { EventFilter } from '../../client/event-filter.ts'
import type { CatchCapability, CatchEvent, CatchRefusals, CatchStatus } from '../../client/index.ts'
import { showExtension } from '../buying/extend.tsx'
import { KeyBar, type Opened, Opener } from '../keys/opener.tsx'
import { type Connection, createConnection } from '../lib/connection.ts'
import { plainly } from '../lib/foreign.ts'
import { bytes, count, duration, plural, sentence, when } from '../lib/format.ts'
import { forget, noteEnd } from '../lib/keys.ts'
import { now } from '../lib/service.ts'
import { Button, Menu } from '../ui/button.tsx'
import { CodeBox, CopyButton, copied } from '../ui/copy.tsx'
import { Form, Input, Select } from '../ui/field.tsx'
import { announce, attempt, confirmed, mount, openDialog, toast } from '../ui/overlay.tsx'
import { LiveState, Notice, Ticking } from '../ui/show.tsx'
import { Activity } from './activity.tsx'
import { createDeletion } from './deletion.ts'
import { EventView, type TabName } from './event.tsx'
import { createEvents, type Events } from './events.ts'
import { Export } from './export.tsx'
import { EventList, type ListHandle } from './list.tsx'
import { ended, Refused } from './state.tsx'
import { createUnseen } from './unseen.ts'

/** As in inbox.css: narrower pages show the list or a request, not both. */
const NARROW = '(max-width: 52rem)'
/** Requests that arrive within this time refresh the counters once. */
const STATUS_DELAY_MS = 400
/** Refused requests do not show by themselves, so the page asks. */
const ASK_EVERY_MS = 20_000
/** A pause of this length ends the typing of a word. */
const TYPING_MS = 250
const DAY_MS = 24 * 60 * 60 * 1000
const ANY = 'any'
const METHODS = [ANY, 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

type Counters = { status: CatchStatus; refusals: CatchRefusals }
type Loaded = Counters & {
  connection: Connection
  inbox: ReturnType<typeof createCatchClient>
  events: Events
  latestSequence: number
}

async function load(capability: CatchCapability): Promise<Loaded> {
  const connection = createConnection()
  const inbox = createCatchClient(connection.http, capability)
  const events = createEvents(inbox)
  const [status, refusals] = await Promise.all([inbox.status(), inbox.refusals()])
  noteEnd(capability.publicId, status.expiresAt)
  const { latestSequence } = await events.load()
  return { connection, inbox, events, status, refusals, latestSequence }
}

function Inbox({
  capability,
  loaded,
  opened,
}: {
  capability: CatchCapability
  loaded: Loaded
  opened: Opened
}) {
  const { inbox, events, connection } = loaded
  const { publicId, ownerToken } = capability
  const ingestUrl = `${location.origin}/c/${publicId}`
  const counters = useSignal<Counters>({ status: loaded.status, refusals: loaded.refusals })
  const chosenId = useSignal<string | null>(null)
  const tab = useSignal<TabName>('Body')
  const unread = useSignal<ReadonlySet<string>>(new Set())
  const isNarrow = useSignal(matchMedia(NARROW).matches)
  const list = useRef<ListHandle | null>(null)
  const search = useRef<HTMLInputElement>(null)
  const stop = useMemo(() => new AbortController(), [])
  const unseen = useMemo(() => createUnseen(stop.signal), [stop])
  const deletion = useMemo(() => createDeletion(stop.signal), [stop])
  const scrolledTo = useRef(0)

  const { status, refusals } = counters.value
  const all = events.shown.value
  const isVacant = events.loaded.value.length === 0 && !events.isFiltered.value
  const chosen = all.find(({ id }) => id === chosenId.value) ?? null
  const shown = chosen ?? (isNarrow.value ? null : (all[0] ?? null))

  async function refresh(): Promise<void> {
    const [next, refused] = await Promise.all([inbox.status(), inbox.refusals()])
    noteEnd(publicId, next.expiresAt)
    counters.value = { status: next, refusals: refused }
  }
  const quietly = (): void => void refresh().catch(() => undefined)

  function follow(after: number): void {
    let latest = after
    const { signal } = stop
    void connection
      .follow(
        inbox.stream({ after, signal }),
        (event) => {
          latest = event.sequence
          counting.current ??= setTimeout(() => {
            counting.current = undefined
            quietly()
          }, STATUS_DELAY_MS)
          arrived(event)
        },
        signal,
      )
      .then((hasEnded) => {
        resumeAfter.current = latest
        if (hasEnded) quietly()
      })
  }
  const resumeAfter = useRef(loaded.latestSequence)
  const counting = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)

  function arrived(event: CatchEvent): void {
    unseen.arrived()
    if (!events.add(event)) return
    unread.value = new Set([...unread.value, event.id])
    announce(`New request: ${event.method} ${plainly(event.path)}`)
  }

  function markRead(id: string | undefined): void {
    if (id === undefined || document.hidden || !unread.value.has(id)) return
    unread.value = new Set([...unread.value].filter((each) => each !== id))
  }

  function focusDetail(): void {
    requestAnimationFrame(() => {
      document.getElementById('event-title')?.focus({ preventScroll: true })
      if (isNarrow.value) scrollTo(0, 0)
    })
  }

  function holdShown(): void {
    if (shown && !isNarrow.value) chosenId.value ??= shown.id
  }

  function choose(event: CatchEvent): void {
    if (isNarrow.value) {
      const here = { inboxEvent: event.id }
      if (chosen) history.replaceState(here, '')
      else {
        scrolledTo.current = scrollY
        history.pushState(here, '')
      }
    }
    chosenId.value = event.id
  }

  /** Back to the list of a phone, over the same way as the browser's own button. */
  function leaveDetail(): void {
    if (history.state?.inboxEvent) history.back()
    else returned()
  }

  function returned(): void {
    if (!isNarrow.value) return
    const id = chosenId.value ?? undefined
    const forward = all.find((event) => event.id === history.state?.inboxEvent)
    chosenId.value = forward?.id ?? null
    if (forward) focusDetail()
    else {
      requestAnimationFrame(() => {
        scrollTo(0, scrolledTo.current)
        list.current?.focus(id)
      })
    }
  }

  function step(by: 1 | -1): void {
    const focusedRow = document.activeElement?.closest<HTMLElement>('[data-id]')?.dataset.id
    const from = isNarrow.value && !chosen ? focusedRow : shown?.id
    const at = all.findIndex(({ id }) => id === from)
    const next = at === -1 ? all[0] : all[at + by]
    if (!next) return
    const wasInDetail = document.activeElement?.closest('.pane-detail') !== null
    // On a phone, the list moves its focus only: a request would take its place.
    if (!isNarrow.value || chosen) choose(next)
    if (wasInDetail) focusDetail()
    else list.current?.focus(next.id)
  }

  function leave(): void {
    if (chosen && isNarrow.value) {
      leaveDetail()
      return
    }
    list.current?.focus((chosen ?? shown)?.id)
    chosenId.value = null
  }

  function remove(event: CatchEvent): void {
    const at = all.findIndex(({ id }) => id === event.id)
    const next = all[at + 1] ?? all[at - 1]
    const wasReading = isNarrow.value && chosen !== null
    events.hide(event.id)
    chosenId.value = isNarrow.value ? null : (next?.id ?? null)
    if (wasReading) leaveDetail()
    else requestAnimationFrame(() => list.current?.focus(next?.id))
    deletion.start({
      path: `/api/catch/${encodeURIComponent(publicId)}/events/${encodeURIComponent(event.id)}`,
      token: ownerToken,
      restore() {
        events.unhide(event.id)
        if (!isNarrow.value) chosenId.value = event.id
      },
      onDeleted: quietly,
    })
  }

  function copyBody(): void {
    if (!shown) return
    if (shown.bodyBytes === 0) {
      toast('This request has no body.')
      return
    }
    const what =
      shown.bodyEncoding === 'base64' ? 'The body is copied as base64.' : 'The body is copied.'
    void copied(shown.body, () => toast(what))
  }

  async function destroy(): Promise<void> {
    const received = plural(status.acceptedRequestCount, 'request')
    const isWanted = await confirmed('Destroy this inbox?', {
      body: `Its address stops working. What it keeps of the ${received} is deleted for good. No refund.`,
      action: 'Destroy it',
    })
    if (!isWanted) return
    await attempt(async () => {
      await inbox.destroy()
      forget(publicId)
      toast('The inbox was destroyed.')
      opened.onClose()
    })
  }

  const extend = (): void =>
    showExtension({
      capability,
      planId: status.planId,
      expiresAt: status.expiresAt,
      onExtended: quietly,
      onReplaced: opened.onReplaced,
    })

  const keys: Record<string, () => unknown> = {
    j: () => step(1),
    k: () => step(-1),
    '/': () => search.current?.focus(),
    c: copyBody,
    z: deletion.undo,
    '?': showShortcuts,
    Escape: leave,
  }
  const pressed = useRef((_: KeyboardEvent): void => {})
  pressed.current = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (document.querySelector('dialog[open]')) return
    const isField = (event.target as Element).closest('input, textarea, select') !== null
    if (isField || (event.target as Element).closest('[role="tablist"]')) return
    const arrows: Record<string, () => void> = { ArrowDown: () => step(1), ArrowUp: () => step(-1) }
    const doing = keys[event.key] ?? (list.current?.hasFocus() ? arrows[event.key] : undefined)
    if (!doing) return
    event.preventDefault()
    doing()
  }
  const back = useRef(returned)
  back.current = returned

  useEffect(() => {
    const { signal } = stop
    const narrow = matchMedia(NARROW)
    const narrowed = (): void => {
      isNarrow.value = narrow.matches
    }
    narrow.addEventListener('change', narrowed, { signal })
    addEventListener('popstate', () => back.current(), { signal })
    document.addEventListener('keydown', (event) => pressed.current(event), { signal })
    history.scrollRestoration = 'manual'
    const timer = setInterval(() => !document.hidden && quietly(), ASK_EVERY_MS)
    follow(resumeAfter.current)
    return () => {
      stop.abort()
      clearInterval(timer)
      history.scrollRestoration = 'auto'
    }
  }, [])
  useEffect(() => {
    const read = (): void => markRead(shown?.id)
    read()
    document.addEventListener('visibilitychange', read)
    return () => document.removeEventListener('visibilitychange', read)
  })

  const end = ended(status)
  const isReading = chosen !== null && !isVacant
  return (
    <div class={`inbox-open ${isReading ? 'reading' : ''}`}>
      <KeyBar opened={opened}>
        <LiveState connection={connection} />
        {status.status !== 'active' && status.status !== 'manually_destroyed' && (
          <Button weight="primary" onClick={extend}>
            Extend
          </Button>
        )}
        <Menu label="More">
          <Button weight="quiet" icon="send" onClick={() => sendTest(ingestUrl)}>
            Send a test request
          </Button>
          <Button
            weight="quiet"
            icon="download"
            onClick={() =>
              openDialog('Download all requests', (close) => (
                <Export inbox={inbox} ingestUrl={ingestUrl} publicId={publicId} close={close} />
              ))
            }
          >
            Download all
          </Button>
          <Button weight="quiet" icon="more" onClick={showShortcuts}>
            Keyboard shortcuts
          </Button>
          <Button weight="quiet" icon="plus" onClick={extend}>
            Extend the inbox
          </Button>
          <Button weight="quiet" danger icon="trash" onClick={destroy}>
            Destroy the inbox
          </Button>
        </Menu>
      </KeyBar>
      <div class="inbox-bar">
        {end === null ? (
          <div class="inbox-address">
            <code title={ingestUrl}>{ingestUrl}</code>
            <CopyButton text={ingestUrl} label="Copy the address of the inbox" isBare />
          </div>
        ) : (
          <p role="status" class="inbox-ended">
            {end}
          </p>
        )}
        <Usage status={status} refusals={refusals} onExtend={extend} />
      </div>
      {connection.problem.value !== null && (
        <Notice
          kind="bad"
          action={<Button onClick={() => follow(resumeAfter.current)}>Connect again</Button>}
        >
          {connection.problem.value}
        </Notice>
      )}
      {isVacant ? (
        <Vacant ingestUrl={ingestUrl} status={status} refusals={refusals} />
      ) : (
        <div class="panes">
          <div class="pane-list">
            <Filters
              events={events}
              search={search}
              onLeave={() => list.current?.focus(shown?.id)}
            />
            <Activity
              events={events.loaded.value}
              refusals={refusals}
              span={events.span.value}
              isWhole={!events.hasOlder.value}
              onSpan={(span) => {
                events.span.value = span
              }}
            />
            {events.jumpedTo.value !== null && (
              <div class="row between small list-note">
                <span>
                  {events.missed.value > 0
                    ? `${plural(events.missed.value, 'new request')}.`
                    : 'Older requests.'}
                </span>
                <button type="button" class="link" onClick={() => attempt(events.load)}>
                  Back to the newest
                </button>
              </div>
            )}
            {all.length === 0 ? (
              <div class="empty">
                <p>No requests match.</p>
                <Button
                  onClick={() => {
                    if (search.current) search.current.value = ''
                    void attempt(() => events.filterBy({}))
                    search.current?.focus()
                  }}
                >
                  Clear the filter
                </Button>
              </div>
            ) : (
              <EventList
                events={all}
                shownId={shown?.id}
                unread={unread.value}
                hasOlder={events.hasOlder.value}
                isLoading={events.isLoading.value}
                handle={list}
                onChoose={(event, { byKeyboard }) => {
                  choose(event)
                  if (byKeyboard || isNarrow.value) focusDetail()
                }}
                onOlder={() => attempt(events.loadOlder)}
              />
            )}
          </div>
          {/* Whoever works in a request wants to keep it, although a newer one comes. */}
          <section
            class="pane-detail"
            aria-label="The request"
            onPointerDown={holdShown}
            onFocusIn={holdShown}
            onWheel={holdShown}
          >
            {shown && (
              <EventView
                event={shown}
                tab={tab.value}
                onTab={(next) => {
                  tab.value = next
                }}
                ingestUrl={ingestUrl}
                searched={events.filter.value.q ?? ''}
                others={all}
                answer={{ inbox }}
                onDelete={() => remove(shown)}
                onBack={leaveDetail}
              />
            )}
          </section>
        </div>
      )}
    </div>
  )
}

function Usage({
  status,
  refusals,
  onExtend,
}: {
  status: CatchStatus
  refusals: CatchRefusals
  onExtend: () => void
}) {
  const { acceptedRequestCount, requestLimit, storedBytes, storageLimitBytes, expiresAt } = status
  const left = Date.parse(expiresAt) - now.value
  const warnFrom = Math.min((Date.parse(expiresAt) - Date.parse(status.createdAt)) / 10, DAY_MS)
  const isSoon = status.status === 'active' && left > 0 && left < warnFrom
  const showRefused = (): void =>
    openDialog('Refused requests', (close) => (
      <>
        <Refused refusals={refusals} status={status} />
        <div class="row">
          <Button onClick={close}>Close</Button>
        </div>
      </>
    ))
  return (
    <p class="inbox-used small number quiet">
      <span>{`${count(acceptedRequestCount)} of ${count(requestLimit)}`}</span> requests ·{' '}
      <span>{`${bytes(storedBytes)} of ${bytes(storageLimitBytes)}`}</span> ·{' '}
      <span title={`Ends ${when(expiresAt)}`}>
        <Ticking
          text={(at) => {
            const time = Date.parse(expiresAt) - at
            return time > 0 ? `ends in ${duration(time)}` : 'ended'
          }}
        />
      </span>
      {refusals.total > 0 && (
        <button type="button" class="link refused-link" onClick={showRefused}>
          {count(refusals.total)} refused
        </button>
      )}
      {isSoon && <Button onClick={onExtend}>Extend</Button>}
    </p>
  )
}

/** How to send a first request, or why there are none. */
function Vacant({ ingestUrl, status, refusals }: Counters & { ingestUrl: string }) {
  const example = `curl --json '{"hello":"world"}' ${ingestUrl}/first`
  if (ended(status) !== null) {
    return (
      <section class="card stack narrow" aria-label="Requests">
        <h2>No requests are kept here</h2>
        <Refused refusals={refusals} status={status} />
      </section>
    )
  }
  return (
    <section class="card stack narrow" aria-label="Requests">
      <h2>Waiting for requests</h2>
      <Refused refusals={refusals} status={status} />
      <p>Give the address above to the sender of your webhooks. Each request shows here at once.</p>
      <div class="row">
        <Button weight="primary" icon="send" onClick={() => sendTest(ingestUrl)}>
          Send a test request
        </Button>
      </div>
      <p>Or send one from a terminal:</p>
      <CodeBox text={example} label="an example" wrapped />
      <p class="small quiet">
        Anything after the address is kept as the path. Senders with the ingest token, as
        Authorization: Bearer, are marked authenticated.
      </p>
    </section>
  )
}

/** Sends a request to the inbox, like any sender would. It counts as one. */
async function sendTest(ingestUrl: string): Promise<void> {
  await attempt(async () => {
    const answer = await fetch(`${ingestUrl}/test`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ hello: 'world', sentFrom: 'this page' }),
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
    })
    // Its owner may have chosen another answer, and it is stored all the same.
    if (answer.status === 401) toast('The inbox refused it: it is full, suspended or over.')
    else if (answer.status === 429) toast('Too many requests at once. Try again in a minute.')
  })
}

/** A search, more filters, and the way to a time. */
function Filters({
  events,
  search,
  onLeave,
}: {
  events: Events
  search: { current: HTMLInputElement | null }
  onLeave: () => void
}) {
  const isOpen = useSignal(false)
  const more = useSignal<Pick<EventFilter, 'method' | 'access' | 'contentType'>>({})
  const failed = useSignal<string | null>(null)
  const typing = useRef<ReturnType<typeof setTimeout>>(undefined)
  const used = Object.keys(more.value).length

  async function apply(): Promise<void> {
    clearTimeout(typing.current)
    const q = search.current?.value ?? ''
    try {
      await events.filterBy({ ...(q === '' ? {} : { q }), ...more.value })
      failed.value = null
    } catch (error) {
      failed.value = sentence(error)
    }
  }

  function changed(): void {
    clearTimeout(typing.current)
    typing.current = setTimeout(apply, TYPING_MS)
  }

  function set(name: keyof typeof more.value, value: string): void {
    const { [name]: _, ...rest } = more.value
    more.value = value === '' || value === ANY ? rest : { ...rest, [name]: value }
    changed()
  }

  function leave(event: KeyboardEvent & { currentTarget: HTMLInputElement }): void {
    if (event.key !== 'Escape') return
    event.preventDefault()
    if (event.currentTarget.value === '') {
      onLeave()
      return
    }
    event.currentTarget.value = ''
    void apply()
  }

  const showJump = (): void =>
    openDialog('Go to a time', (close) => <Jump events={events} close={close} />)
  return (
    <search class="filters">
      <div class="row nowrap">
        <input
          ref={search}
          type="search"
          maxLength={120}
          autocomplete="off"
          placeholder="Search"
          aria-label="Search"
          aria-keyshortcuts="/"
          onInput={changed}
          onKeyDown={leave}
        />
        <Button
          icon="filter"
          label={used === 0 ? 'Filters' : `Filters (${used})`}
          pressed={isOpen.value || used > 0}
          onClick={() => {
            isOpen.value = !isOpen.value
          }}
        />
        <Button icon="clock" label="Go to a time" onClick={showJump} />
      </div>
      {isOpen.value && (
        <div class="pairs">
          <Select
            label="Method"
            options={METHODS}
            chosen={more.value.method ?? ANY}
            onChoose={(method) => set('method', method)}
          />
          <Select
            label="Access"
            options={[ANY, 'public', 'authenticated']}
            chosen={more.value.access ?? ANY}
            onChoose={(access) => set('access', access)}
          />
          <Input
            label="Content type"
            type="search"
            maxLength={255}
            placeholder="application/json"
            value={more.value.contentType ?? ''}
            onText={(text) => set('contentType', text.trim())}
          />
        </div>
      )}
      {failed.value !== null && (
        <Notice kind="bad" action={<Button onClick={apply}>Try again</Button>}>
          {failed.value} The list shows the requests from before.
        </Notice>
      )}
    </search>
  )
}

function Jump({ events, close }: { events: Events; close: () => void }) {
  async function go(before: number | null): Promise<void> {
    await attempt(() => events.jump(before))
    close()
  }
  return (
    <Form
      label="Go to a time"
      action="Go"
      onSubmit={(field) => go(new Date(field('time')).getTime() + 1)}
      onCancel={close}
      more={<Button onClick={() => go(null)}>Oldest requests</Button>}
    >
      <Input
        label="Date and time"
        hint="Shows the requests from then and before."
        name="time"
        type="datetime-local"
        step="1"
        required
      />
    </Form>
  )
}

const SHORTCUTS: [keys: string[], what: string][] = [
  [['j', '↓'], 'Next request'],
  [['k', '↑'], 'Previous request'],
  [['Enter'], 'Open the request, and go to it'],
  [['Esc'], 'Back to the list'],
  [['/'], 'Search'],
  [['c'], 'Copy the body'],
  [['z'], 'Undo a deletion'],
  [['?'], 'Show these shortcuts'],
]

function showShortcuts(): void {
  openDialog('Keyboard shortcuts', (close) => (
    <>
      <table>
        <tbody>
          {SHORTCUTS.map(([keys, what]) => (
            <tr key={what}>
              <th scope="row">
                {keys.map((key) => (
                  <span key={key}>
                    <kbd>{key}</kbd>{' '}
                  </span>
                ))}
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="row">
        <Button onClick={close}>Close</Button>
      </div>
    </>
  ))
}

mount(
  <Opener
    product="catch"
    title="Inboxes"
    about="An inbox is an address that stores every request it gets, exact to the byte."
    load={load}
  >
    {(capability, loaded, opened) => (
      <Inbox capability={capability} loaded={loaded} opened={opened} />
    )}
  </Opener>,
)
