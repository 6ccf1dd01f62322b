/** The front page: what this browser has, an inbox that lives in the page, and whether anything can be bought. */
import './home.css'
import { useEffect, useState } from 'preact/hooks'
import { Others } from './buying/others.tsx'
import { Things } from './keys/things.tsx'
import { ago } from './lib/format.ts'
import { kept } from './lib/keys.ts'
import { catalog, now } from './lib/service.ts'
import { THINGS, whyClosed } from './lib/terms.ts'
import { type Unfinished, unfinished } from './lib/unfinished.ts'
import { Button } from './ui/button.tsx'
import { announce, mount } from './ui/overlay.tsx'
import { Notice, Pre, Ticking } from './ui/show.tsx'

function Mine() {
  if (kept.value.length === 0 && unfinished.value.length === 0) return null
  return (
    <section class="card stack tight mine" aria-label="Your things">
      <h2>Your things</h2>
      <Others list={unfinished.value} onOpen={(each) => location.assign(pageOf(each))} />
      {kept.value.length > 0 && <Things />}
    </section>
  )
}

const pageOf = ({ product, extends: extended }: Unfinished): string => {
  if (product === 'whisper') return '/whisper'
  return extended === undefined ? `/buy#${product}` : THINGS[product].page
}

function Closed() {
  const [why, setWhy] = useState<string | null>(null)
  useEffect(() => {
    catalog().then(
      (told) => setWhy(whyClosed(told)),
      () => undefined,
    )
  }, [])
  return why === null ? null : <Notice kind="warn">{why}</Notice>
}

const SAMPLES = [
  { method: 'POST', path: '/form', body: 'name=Ada&plan=spark' },
  { method: 'PUT', path: '/sensor/4', body: '{\n  "celsius": 21.5\n}' },
  { method: 'POST', path: '/github', body: '{\n  "action": "opened",\n  "number": 7\n}' },
  { method: 'POST', path: '/stripe', body: '{\n  "type": "invoice.paid",\n  "amount": 2100\n}' },
]
const MAX_ROWS = 5

type Sample = (typeof SAMPLES)[number] & { id: number; at: number }

/** It begins with the first three, the latest first. */
function firstRows(): Sample[] {
  const ages = [190_000, 42_000, 0]
  return SAMPLES.slice(0, 3)
    .map((sample, id) => ({ ...sample, id, at: now.peek() - (ages[id] ?? 0) }))
    .toReversed()
}

/** Nothing is sent or shared: the requests are made in the page. */
function Demo() {
  const [rows, setRows] = useState(firstRows)
  const [chosen, choose] = useState<number>()
  const shown = rows.find(({ id }) => id === chosen) ?? rows[0]
  function send(): void {
    const id = (rows[0]?.id ?? 0) + 1
    const sample = SAMPLES[id % SAMPLES.length]
    if (!sample) return
    setRows([{ ...sample, id, at: now.peek() }, ...rows].slice(0, MAX_ROWS))
    choose(id)
    announce(`New request: ${sample.method} ${sample.path}`)
  }
  return (
    <>
      <div class="row between">
        <strong class="small">An inbox, in this page</strong>
        <Button icon="send" onClick={send}>
          Send a request
        </Button>
      </div>
      <div class="demo-panes">
        <ul>
          {rows.map(({ id, method, path, at }) => (
            <li key={id}>
              <button type="button" aria-pressed={id === shown?.id} onClick={() => choose(id)}>
                <span class="method">{method}</span> <span>{path}</span>{' '}
                <span class="quiet number">
                  <Ticking text={(time) => ago(time - at)} />
                </span>
              </button>
            </li>
          ))}
        </ul>
        <Pre kind="content" label="Body of the request">
          {shown?.body}
        </Pre>
      </div>
      <p class="small quiet">A demo: nothing is sent, and nobody else sees it.</p>
    </>
  )
}

mount(<Mine />, 'mine')
mount(<Closed />, 'closed')
mount(<Demo />, 'demo')
