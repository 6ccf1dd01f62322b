/** The answer that the inbox gives to those who send to it. */
import { useEffect, useState } from 'preact/hooks'
import type { CatchClient } from '../../client/catch.ts'
import type { CatchResponse, CatchResponseShown } from '../../client/index.ts'
import { sentence } from '../lib/format.ts'
import { type Fields, Form, Input, Select } from '../ui/field.tsx'
import { toast } from '../ui/overlay.tsx'

type Status = NonNullable<Extract<CatchResponse, { status: unknown }>['status']>
type ContentType = 'application/json' | 'text/plain'
const STATUSES = '200 201 202 204 400 403 404 409 410 422 429'.split(' ')
const CONTENT_TYPES: ContentType[] = ['application/json', 'text/plain']

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

export function Answer({ inbox }: { inbox: CatchClient }) {
  const [current, setCurrent] = useState<string>('Loading the answer…')
  const [preset, setPreset] = useState<Preset>('JSON {"ok":true}')
  useEffect(() => {
    inbox.response().then(
      (shown) => setCurrent(words(shown)),
      (error) => setCurrent(sentence(error)),
    )
  }, [])

  async function save(field: Fields): Promise<void> {
    const wanted = chosenIn(preset, field)
    if ('status' in wanted && wanted.status === 204) {
      await inbox.deleteResponse()
      setCurrent(words({ status: 204 }))
    } else setCurrent(words(await inbox.setResponse(wanted)))
    toast('Saved. The next request gets this answer.')
  }

  const chosen = PRESETS[preset]
  return (
    <Form
      label="Answer"
      action="Save the answer"
      onSubmit={save}
      note="GET requests and browsers always get 204, except for challenges."
    >
      <p>{current}</p>
      <Select label="Answer for" options={NAMES} chosen={preset} onChoose={setPreset} />
      {'fixed' in chosen && chosen.fixed.status !== 204 && (
        <Fixed key={preset} fixed={chosen.fixed} />
      )}
      {'hmac' in chosen && (
        <Input
          label="Secret"
          hint="The service stores it encrypted, and answers the challenges with it."
          name="secret"
          type="password"
          required
        />
      )}
      {'echo' in chosen && (
        <p class="small quiet">{`Answers with the “${Object.values(chosen.echo)[0]}” of the request as text. Other requests get 204.`}</p>
      )}
    </Form>
  )
}

function Fixed({ fixed }: { fixed: { status: Status; contentType?: ContentType; body: string } }) {
  return (
    <>
      <div class="pairs">
        <Select label="Status" name="status" options={STATUSES} chosen={`${fixed.status}`} />
        <Select
          label="Content type"
          name="contentType"
          options={CONTENT_TYPES}
          chosen={fixed.contentType}
        />
      </div>
      <Input
        label="Response body"
        hint="Up to 4 KiB."
        name="body"
        rows={4}
        class="mono"
        maxLength={4096}
        defaultValue={fixed.body}
      />
    </>
  )
}

function chosenIn(preset: Preset, field: Fields): CatchResponse {
  const chosen = PRESETS[preset]
  if ('echo' in chosen) return { echo: { ...chosen.echo } }
  if ('hmac' in chosen) {
    return { hmac: { provider: chosen.hmac, secret: field('secret').trim() } }
  }
  if (chosen.fixed.status === 204) return { status: 204 }
  return {
    status: Number(field('status')) as Status,
    contentType: field('contentType') as ContentType,
    body: field('body'),
  }
}

function words(shown: CatchResponseShown): string {
  return `The inbox answers ${answerIn(shown)}.`
}

function answerIn(shown: CatchResponseShown): string {
  if ('echo' in shown) return `with the “${Object.values(shown.echo)[0]}” of each request`
  if ('hmac' in shown) return `the challenges of ${shown.hmac.provider === 'x' ? 'X' : 'Zoom'}`
  const { status, body = '' } = shown
  return body === '' ? `${status} without a body` : `${status} with ${body.slice(0, 80)}`
}
