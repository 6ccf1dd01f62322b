/** How the requests of an inbox are narrowed: a search, more filters, and the way to a time. */
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { EventFilter } from '../../client/event-filter.ts'
import { sentence } from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { Form, Input, Select } from '../ui/field.tsx'
import { attempt, openDialog } from '../ui/overlay.tsx'
import { Notice } from '../ui/show.tsx'
import type { Events } from './events.ts'
import type { Inbox } from './model.ts'

/** A pause of this length ends the typing of a word. */
const TYPING_MS = 250
const ANY = 'any'
const METHODS = [ANY, 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

export function Filters({
  inbox: { events, search, list, shown },
}: {
  inbox: Pick<Inbox, 'events' | 'search' | 'list' | 'shown'>
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
      list.current?.focus(shown.value?.id)
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
