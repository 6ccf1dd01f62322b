/** Every component with its states, for who works on the pages. A built package has no such page. */
import '../buying/buying.css'
import '../content/content.css'
import { useState } from 'preact/hooks'
import { PlanCard } from '../buying/plans.tsx'
import { ContentView } from '../content/content-view.tsx'
import type { Offer } from '../lib/terms.ts'
import { Button, Choice, Menu, Tabs } from '../ui/button.tsx'
import { CodeBox, CopyButton } from '../ui/copy.tsx'
import { Input, Select } from '../ui/field.tsx'
import { confirmed, mount, openDialog, toast } from '../ui/overlay.tsx'
import { Fold, Meter, Notice, Qr, State, Ticking, Working } from '../ui/show.tsx'

const BODY = new TextEncoder().encode('{"action":"opened","labels":["bug"],"number":7,"ok":true}')
const OFFER: Offer = {
  plan: {
    planId: 'spark',
    priceSats: 100,
    durationLabel: '24 hours',
    bestFor: 'Trying out',
    available: true,
    requestLimit: 100,
    storageLimitBytes: 1e6,
    maxBytesPerRequest: 1e5,
  },
  terms: { product: 'catch', planId: 'spark', lifetime: '24 hours', priceSats: 100, limits: [] },
}
const CARD = { offer: OFFER, limits: ['100 requests'], onChoose: () => undefined }

function Page() {
  const [tab, setTab] = useState('one')
  const [choice, setChoice] = useState<'Text' | 'File'>('Text')
  return (
    <div class="stack loose">
      <h1>Components</h1>
      <section class="card stack" aria-label="Buttons">
        <h2>Buttons</h2>
        <div class="row">
          <Button weight="primary">Primary</Button>
          <Button>Secondary</Button>
          <Button weight="quiet">Quiet</Button>
          <Button danger icon="trash">
            Danger
          </Button>
          <Button disabled>Disabled</Button>
          <Button pressed>Pressed</Button>
          <Button icon="pencil" label="Rename" />
          <CopyButton text="copied">Copy</CopyButton>
          <Menu label="Menu">
            <Button>An entry</Button>
          </Menu>
        </div>
        <Button weight="primary" size="large wide">
          Large and wide
        </Button>
      </section>
      <section class="card stack" aria-label="Fields">
        <h2>Fields</h2>
        <div class="pairs">
          <Input label="Plain" hint="A hint." />
          <Select label="Select" options={['One', 'Two']} />
        </div>
        <label class="check">
          <input type="checkbox" /> <span>A box</span>
        </label>
        <Choice label="Kind" names={['Text', 'File']} chosen={choice} onChoose={setChoice} />
      </section>
      <section class="card stack" aria-label="Messages">
        <h2>Messages</h2>
        <Notice>A notice.</Notice>
        <Notice kind="warn" action={<Button>Act</Button>}>
          A warning.
        </Notice>
        <Notice kind="bad">A failure.</Notice>
        <Notice kind="good">A success.</Notice>
        <div class="row">
          <Button onClick={() => toast('A toast.', { label: 'Undo', run: () => undefined })}>
            Toast
          </Button>
          <Button onClick={() => confirmed('Sure?', { body: 'It is gone then.', action: 'Do it' })}>
            Question
          </Button>
          <Button
            onClick={() =>
              openDialog('A dialog', (close) => <Button onClick={close}>Close</Button>)
            }
          >
            Dialog
          </Button>
          <span class="badge">badge</span>
          <span class="badge good">good</span>
          <span class="badge bad">bad</span>
        </div>
      </section>
      <section class="card stack" aria-label="States">
        <h2>States</h2>
        <div class="row">
          <State kind="waiting">Waiting</State>
          <State kind="good">Operational</State>
          <State kind="bad">Late</State>
          <State kind="over">Expired</State>
          <State kind="lost">Connection lost</State>
        </div>
        <Meter label="Requests" used={40} limit={100} show={String} />
        <Meter label="Nearly full" used={96} limit={100} show={String} />
        <p>
          <Ticking
            text={(now) => `The time is ${new Date(now).toISOString().slice(11, 19)} UTC.`}
          />
        </p>
        <div class="empty">
          <p>Nothing yet.</p>
        </div>
      </section>
      <section class="card stack" aria-label="Views">
        <h2>Views</h2>
        <Tabs label="Tabs" names={['one', 'two']} chosen={tab} onChoose={setTab}>
          <p>The panel of {tab}.</p>
        </Tabs>
        <Fold title="A fold">{() => <p>What it opens.</p>}</Fold>
        <CodeBox text="curl https://example.com" label="an example" />
        <ContentView content={{ bytes: BODY, contentType: 'application/json', label: 'Body' }} />
        <Qr text="LIGHTNING:LNBC1" label="A QR code" />
      </section>
      <div class="pairs">
        <PlanCard {...CARD} refusal={null} />
        <PlanCard {...CARD} refusal="Too small." />
      </div>
      <Working>Asking for an invoice…</Working>
    </div>
  )
}

mount(<Page />)
