/** The page of an inbox: its address and limits, and its requests as they arrive. */
import './inbox.css'
import { useEffect } from 'preact/hooks'
import { showExtension } from '../buying/extend.tsx'
import { KeyBar, mountOpener } from '../keys/opener.tsx'
import { type Owned, OwnerMenu } from '../keys/owner.tsx'
import { plural } from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { attempt, openDialog } from '../ui/overlay.tsx'
import { Failure, LiveState } from '../ui/show.tsx'
import { Activity } from './activity.tsx'
import { EventView } from './event.tsx'
import { Export } from './export.tsx'
import { Filters } from './filters.tsx'
import { EventList } from './list.tsx'
import { type Inbox, loadInbox } from './model.ts'
import { ended, sendTest, Usage, Vacant } from './state.tsx'

function InboxView({ inbox }: { inbox: Inbox }) {
  const { capability, client, connection, ingestUrl } = inbox
  const { status } = inbox.counters.value
  useEffect(inbox.start, [inbox])

  const received = plural(status.acceptedRequestCount, 'request')
  const owned: Owned = {
    capability,
    client,
    status,
    isActive: status.status === 'active',
    onExtended: inbox.refresh,
    loss: `Its address stops working. All that came (${received}) is deleted for good.`,
  }
  const showExport = (): void =>
    openDialog('Download all requests', (close) => <Export inbox={inbox} close={close} />)

  const end = ended(status)
  const isVacant = inbox.isVacant.value
  const shown = inbox.shown.value
  const isReading = inbox.chosen.value !== null && !isVacant
  return (
    <div class={`inbox-open ${isReading ? 'reading' : ''}`}>
      <KeyBar>
        {end === null && <LiveState connection={connection} />}
        {(status.status === 'exhausted' || status.status === 'expired') && (
          <Button weight="primary" href="/buy#catch">
            Buy another
          </Button>
        )}
        <OwnerMenu owned={owned}>
          <Button icon="send" onClick={() => sendTest(ingestUrl)}>
            Send a test request
          </Button>
          <Button icon="download" onClick={showExport}>
            Download all
          </Button>
        </OwnerMenu>
      </KeyBar>
      <div class="inbox-bar">
        {end === null ? (
          <div class="inbox-address">
            <code title={ingestUrl}>{ingestUrl}</code>
            <CopyButton text={ingestUrl} label="Copy the address of the inbox" />
          </div>
        ) : (
          <p role="status" class="inbox-ended">
            {end}
          </p>
        )}
        <Usage {...inbox.counters.value} onExtend={() => showExtension(owned)} />
      </div>
      {connection.error.value !== null && (
        <Failure error={connection.error.value} onAgain={inbox.follow} />
      )}
      {isVacant ? (
        <Vacant ingestUrl={ingestUrl} {...inbox.counters.value} />
      ) : (
        <div class="panes">
          <div class="pane-list">
            <Requests inbox={inbox} />
          </div>
          <section
            class="pane-detail"
            aria-label="The request"
            onPointerDown={inbox.holdShown}
            onFocusIn={inbox.holdShown}
            onWheel={inbox.holdShown}
          >
            {shown && <EventView inbox={inbox} event={shown} />}
          </section>
        </div>
      )}
    </div>
  )
}

function Requests({ inbox }: { inbox: Inbox }) {
  const { events } = inbox
  const { missed } = events
  return (
    <>
      <Filters inbox={inbox} />
      <Activity inbox={inbox} />
      {events.jumpedTo.value !== null && (
        <div class="row between small list-note">
          <span>
            {missed.value > 0 ? `${plural(missed.value, 'new request')}.` : 'Older requests.'}
          </span>
          <button type="button" class="link" onClick={() => attempt(events.load)}>
            Back to the newest
          </button>
        </div>
      )}
      {events.shown.value.length === 0 ? (
        <div class="empty">
          <p>No requests match.</p>
          <Button onClick={() => attempt(inbox.clearFilter)}>Clear the filter</Button>
        </div>
      ) : (
        <EventList inbox={inbox} />
      )}
    </>
  )
}

mountOpener({
  product: 'catch',
  title: 'Inboxes',
  load: loadInbox,
  children: (inbox) => <InboxView inbox={inbox} />,
})
