/** The answer that the inbox gives to those who send to it. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { CatchClient } from '../../client/catch.ts'
import { MayflyError } from '../../client/errors.ts'
import type { CatchResponse, CatchResponseShown } from '../../client/index.ts'
import { sentence } from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { toast } from '../ui/overlay.tsx'
import { Notice } from '../ui/show.tsx'

export type AnswerOptions = {
  inbox: Pick<CatchClient, 'response' | 'setResponse' | 'deleteResponse'>
}

const STATUSES = [200, 201, 202, 204, 400, 403, 404, 409, 410, 422, 429] as const
type Status = (typeof STATUSES)[number]

/** What a sender expects when an address is set up there. */
const PRESETS = {
  'No content (204)': { fixed: { status: 204, body: '' } },
  'JSON {"ok":true}': {
    fixed: { status: 200, contentType: 'application/json', body: '{"ok":true}' },
  },
  'Slack, challenge': { echo: { json: 'challenge' } },
  'Meta, hub.challenge': { echo: { query: 'hub.challenge' } },
  'Dropbox, challenge': { echo: { query: 'challenge' } },
  'Microsoft Graph, validationToken': { echo: { query: 'validationToken' } },
  'Zoom, by its secret token': { hmac: 'zoom' },
  'X, by its consumer secret': { hmac: 'x' },
  'My own': { fixed: { status: 200, contentType: 'text/plain', body: '' } },
} as const
type Preset = keyof typeof PRESETS
const NAMES = Object.keys(PRESETS) as Preset[]

export function Answer({ inbox }: AnswerOptions) {
  const current = useSignal<CatchResponseShown | null>(null)
  const preset = useSignal<Preset>('JSON {"ok":true}')
  const problem = useSignal<string | null>(null)
  useEffect(() => {
    inbox.response().then(
      (shown) => {
        current.value = shown
      },
      (error) => {
        problem.value = sentence(error)
      },
    )
  }, [])

  async function save(event: Event & { currentTarget: HTMLFormElement }): Promise<void> {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    try {
      const chosen = chosenIn(preset.value, form)
      if ('status' in chosen && chosen.status === 204) {
        await inbox.deleteResponse()
        current.value = { status: 204 }
      } else current.value = await inbox.setResponse(chosen)
      problem.value = null
      toast('Saved. The next request gets this answer.')
    } catch (error) {
      const isRefused = error instanceof MayflyError && error.expected !== null
      problem.value = isRefused ? `${error.field}: ${error.expected}.` : sentence(error)
    }
  }

  const chosen = PRESETS[preset.value]
  return (
    <form class="stack" aria-label="Answer" onSubmit={save}>
      <p>
        {current.value === null
          ? 'Loading the answer…'
          : `The inbox answers ${words(current.value)}.`}
      </p>
      <Field label="Answer for">
        <select
          value={preset.value}
          onChange={({ currentTarget }) => {
            preset.value = currentTarget.value as Preset
          }}
        >
          {NAMES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
      {'fixed' in chosen && chosen.fixed.status !== 204 && (
        <Fixed key={preset.value} fixed={chosen.fixed} />
      )}
      {'hmac' in chosen && (
        <Field label="Secret" hint="The service keeps it encrypted, to prove that you know it.">
          <input name="secret" type="password" autocomplete="off" required />
        </Field>
      )}
      {'echo' in chosen && (
        <p class="small quiet">{`Sends back “${Object.values(chosen.echo)[0]}” of the request as text. Other requests get 204.`}</p>
      )}
      {problem.value !== null && <Notice kind="bad">{problem.value}</Notice>}
      <div class="row">
        <Button submits weight="primary">
          Save the answer
        </Button>
      </div>
      <p class="small quiet">GET requests and browsers always get 204, except for challenges.</p>
    </form>
  )
}

function Fixed({ fixed }: { fixed: { status: number; contentType?: string; body: string } }) {
  return (
    <>
      <div class="pairs">
        <Field label="Status">
          <select name="status">
            {STATUSES.map((status) => (
              <option key={status} selected={status === fixed.status}>
                {status}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Content type">
          <select name="contentType">
            <option selected={fixed.contentType === 'application/json'}>application/json</option>
            <option selected={fixed.contentType !== 'application/json'}>text/plain</option>
          </select>
        </Field>
      </div>
      <Field label="Response body" hint="Up to 4 KiB.">
        <textarea
          name="body"
          rows={4}
          class="mono"
          spellcheck={false}
          maxLength={4096}
          defaultValue={fixed.body}
        />
      </Field>
    </>
  )
}

function chosenIn(preset: Preset, form: FormData): CatchResponse {
  const chosen = PRESETS[preset]
  if ('echo' in chosen) return { echo: { ...chosen.echo } }
  if ('hmac' in chosen) {
    return { hmac: { provider: chosen.hmac, secret: String(form.get('secret') ?? '').trim() } }
  }
  if (chosen.fixed.status === 204) return { status: 204 }
  return {
    status: Number(form.get('status')) as Status,
    contentType: form.get('contentType') === 'text/plain' ? 'text/plain' : 'application/json',
    body: String(form.get('body') ?? ''),
  }
}

function words(shown: CatchResponseShown): string {
  if ('echo' in shown) return `with the “${Object.values(shown.echo)[0]}” of each request`
  if ('hmac' in shown) return `the challenges of ${shown.hmac.provider === 'x' ? 'X' : 'Zoom'}`
  const { status, body = '' } = shown
  return body === '' ? `${status} without a body` : `${status} with ${body.slice(0, 80)}`
}
