/** How the requests of an inbox are narrowed: a search, more filters, and the way to a time. */
import { useRef, useState } from 'preact/hooks'
import type { EventFilter } from '../../client/event-filter.ts'
import { reasonOf } from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { Form, Input, Select } from '../ui/field.tsx'
import { attempt, openDialog } from '../ui/overlay.tsx'
import { Failure } from '../ui/show.tsx'
import type { Events } from './events.ts'
import type { Inbox } from './model.ts'

/** A pause of this length ends the typing of a word. */
const TYPING_MS = 250
const ANY = 'any'
const METHODS = [ANY, 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

export function Filters({ inbox }: { inbox: Inbox }) {
  const { events, wanted, search, focusRow, shown } = inbox
  const [isOpen, setOpen] = useState(false)
  const [failed, setFailed] = useState<unknown>(null)
  const typing = useRef<ReturnType<typeof setTimeout>>(undefined)
  const { q = '', ...more } = wanted.value
  const used = Object.keys(more).length

  async function apply(): Promise<void> {
    clearTimeout(typing.current)
    try {
      await events.filterBy(wanted.value)
      setFailed(null)
    } catch (error) {
      setFailed(error)
    }
  }

  function set(name: keyof EventFilter, value: string): void {
    const { [name]: _, ...rest } = wanted.value
    wanted.value = value === '' || value === ANY ? rest : { ...rest, [name]: value }
    clearTimeout(typing.current)
    typing.current = setTimeout(apply, TYPING_MS)
  }

  function leave(event: KeyboardEvent): void {
    if (event.key !== 'Escape') return
    event.preventDefault()
    if (q === '') focusRow.current(shown.value?.id)
    else {
      set('q', '')
      void apply()
    }
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
          value={q}
          onInput={({ currentTarget }) => set('q', currentTarget.value)}
          onKeyDown={leave}
        />
        <Button
          icon="filter"
          label={used === 0 ? 'Filters' : `Filters (${used})`}
          pressed={isOpen || used > 0}
          onClick={() => setOpen(!isOpen)}
        />
        <Button icon="clock" label="Go to a time" onClick={showJump} />
      </div>
      {isOpen && (
        <div class="pairs">
          <Select
            label="Method"
            options={METHODS}
            chosen={more.method ?? ANY}
            onChoose={(method) => set('method', method)}
          />
          <Select
            label="Access"
            options={[ANY, 'public', 'authenticated']}
            chosen={more.access ?? ANY}
            onChoose={(access) => set('access', access)}
          />
          <Input
            label="Content type"
            type="search"
            maxLength={255}
            placeholder="application/json"
            value={more.contentType ?? ''}
            onText={(text) => set('contentType', text.trim())}
          />
        </div>
      )}
      {failed !== null && (
        <Failure
          error={failed}
          says={`${reasonOf(failed)} The list shows the previous filter.`}
          onAgain={apply}
        />
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
        hint="Shows the requests up to this time."
        name="time"
        type="datetime-local"
        step="1"
        required
      />
    </Form>
  )
}
