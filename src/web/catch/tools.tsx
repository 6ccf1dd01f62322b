/** What one does with a request: check its signature, send it again, compare it with another. */
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { eventBody, toCurl } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { verifySignature } from '../../client/signature.ts'
import { HMAC_ALGORITHMS, type HmacAlgorithm } from '../../protocol/signatures/mac.ts'
import {
  guessProvider,
  type SignatureProvider,
  type SignatureRules,
} from '../../protocol/signatures/signatures.ts'
import { textOf } from '../content/charset.ts'
import { indented } from '../content/json.ts'
import { mediaOf } from '../content/media.ts'
import { plainly } from '../lib/foreign.ts'
import { plural, time } from '../lib/format.ts'
import { CodeBox } from '../ui/copy.tsx'
import { type Fields, Form, Input, Select } from '../ui/field.tsx'
import { Pre } from '../ui/show.tsx'

const PROVIDERS: Record<SignatureProvider, string> = {
  github: 'GitHub',
  stripe: 'Stripe',
  slack: 'Slack',
  shopify: 'Shopify',
  'standard-webhooks': 'Standard Webhooks, Svix',
  zoom: 'Zoom',
  x: 'X',
  hmac: 'Another HMAC',
}
const HASHES = Object.fromEntries(
  Object.entries(HMAC_ALGORITHMS).map(([id, { name }]) => [id, name]),
) as Record<HmacAlgorithm, string>

/** Checks the signature. The secret stays in this form: it is neither stored nor sent. */
export function Verify({ event }: { event: CatchEvent }) {
  const guessed = guessProvider(event)
  const [provider, setProvider] = useState<SignatureProvider>(guessed ?? 'hmac')
  const [verdict, setVerdict] = useState<{ valid: boolean; sentence: string } | null>(null)
  if (!globalThis.crypto?.subtle) {
    return <p>Browsers verify signatures on HTTPS pages alone. Open this page over HTTPS.</p>
  }
  async function check(field: Fields): Promise<void> {
    const rules: SignatureRules =
      provider === 'hmac'
        ? {
            provider,
            header: field('header').trim(),
            prefix: field('prefix'),
            algorithm: field('algorithm') as HmacAlgorithm,
            encoding: field('encoding') as 'hex' | 'base64',
          }
        : { provider }
    setVerdict(await verifySignature(event, { ...rules, secret: field('secret') }))
  }
  return (
    <>
      <Form
        label="Verify signature"
        action="Verify signature"
        onSubmit={check}
        more={
          <span class="small quiet">The secret stays in this page. It is not stored or sent.</span>
        }
      >
        {guessed !== null && (
          <p class="small quiet">Its headers are those of {PROVIDERS[guessed]}.</p>
        )}
        <div class="pairs">
          <Select
            label="Sender"
            options={PROVIDERS}
            chosen={provider}
            onChoose={(next) => {
              setProvider(next)
              setVerdict(null)
            }}
          />
          <Input label="Signing secret" name="secret" type="password" required />
        </div>
        {provider === 'hmac' && (
          <>
            <div class="pairs">
              <Input label="Header" name="header" required placeholder="X-Signature" />
              <Input label="Prefix" name="prefix" placeholder="sha256=" />
            </div>
            <div class="pairs">
              <Select label="Hash" name="algorithm" options={HASHES} chosen="sha256" />
              <Select label="Encoding" name="encoding" options={['hex', 'base64']} />
            </div>
          </>
        )}
      </Form>
      <p class="row" role="status">
        {verdict && (
          <>
            <span class={`badge ${verdict.valid ? 'good' : 'bad'}`}>
              {verdict.valid ? 'Valid' : 'Not valid'}
            </span>
            {plainly(verdict.sentence)}
          </>
        )}
      </p>
    </>
  )
}

/** A longer command is copied and not drawn. */
const MAX_SHOWN_CHARACTERS = 20_000
const TARGET = 'http://localhost:3000'
/** As typed last, for the next request too. */
const target = signal(TARGET)

/** The request as a command that sends it again. The page itself connects to nobody but its own service. */
export function Replay({ event }: { event: CatchEvent }) {
  const url = target.value.trim() || TARGET
  const code = toCurl(event, { url })
  const cli = `mayfly catch replay <name> ${event.sequence} --to ${url}`
  return (
    <>
      <Input
        label="Target"
        hint="The path and the query of the request are added."
        type="url"
        value={target.value}
        onText={(text) => {
          target.value = text
        }}
      />
      <CodeBox
        text={code}
        label="the request for curl"
        shown={
          code.length > MAX_SHOWN_CHARACTERS ? `${code.slice(0, MAX_SHOWN_CHARACTERS)}…` : code
        }
      />
      <p class="small quiet">Or on the command line, with the name of your saved inbox:</p>
      <CodeBox text={cli} label="the command that replays the request" wrapped />
    </>
  )
}

/** Nobody finds one of more in a menu. */
const MAX_OTHERS = 100
const MAX_PATH_CHARACTERS = 60
const MAX_SHOWN_LINES = 1_000
const MAX_LINE_CHARACTERS = 1_000
const MAX_BODY_CHARACTERS = 1_000_000

/** The lines that one request has and another has not. Lines in another order are no difference. */
export function Compare({ event, others }: { event: CatchEvent; others: readonly CatchEvent[] }) {
  const choices = others.filter(({ id }) => id !== event.id).slice(0, MAX_OTHERS)
  // What usually is asked: what is new since the one before?
  const before = choices.find(({ sequence }) => sequence < event.sequence) ?? choices[0]
  const [chosen, choose] = useState(before?.id)
  const other = choices.find(({ id }) => id === chosen) ?? before
  if (!other) return <p class="quiet">There is no other request in the list.</p>
  const [old, fresh] = [linesOf(other), linesOf(event)]
  const lines = [
    ...missing(old, fresh).map((line) => ['del', `− ${line}\n`] as const),
    ...missing(fresh, old).map((line) => ['ins', `+ ${line}\n`] as const),
  ]
  return (
    <>
      <Select
        label="The other request"
        options={Object.fromEntries(choices.map((each) => [each.id, titleOf(each)]))}
        chosen={other.id}
        onChoose={choose}
      />
      <p role="status">
        {lines.length === 0
          ? 'Method, path, headers and body have the same lines.'
          : `− is in #${other.sequence}, + is in #${event.sequence}.`}
      </p>
      {lines.length > 0 && (
        <Pre kind="content diff" label="Differences">
          {lines.slice(0, MAX_SHOWN_LINES).map(([Tag, line], at) => (
            <Tag key={at}>{plainly(line)}</Tag>
          ))}
          {lines.length > MAX_SHOWN_LINES && `… ${plural(lines.length - MAX_SHOWN_LINES, 'line')}`}
        </Pre>
      )}
    </>
  )
}

const titleOf = ({ sequence, method, path, receivedAt }: CatchEvent): string =>
  `#${sequence} ${method} ${plainly((path || '/').slice(0, MAX_PATH_CHARACTERS))}, ${time(receivedAt)}`

/** The lines of one list that another has not, or not as often. */
function missing(lines: readonly string[], others: readonly string[]): string[] {
  const left = new Map<string, number>()
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1)
  return lines.filter((line) => {
    const times = left.get(line) ?? 0
    left.set(line, times - 1)
    return times <= 0
  })
}

/** The request line, the headers, and the body: JSON as it is shown, other texts as they were sent. */
function linesOf(event: CatchEvent): string[] {
  const { method, path, query, headers, contentType, bodyBytes, bodySha256 } = event
  const text = formatted(textOf(eventBody(event), mediaOf(contentType))?.text ?? '')
  const isCompared = (text !== '' || bodyBytes === 0) && text.length <= MAX_BODY_CHARACTERS
  return [
    `${method} ${path || '/'}${query === '' ? '' : `?${query}`}`,
    ...headers.map(({ name, value }) => `${name.toLowerCase()}: ${value}`),
    ...(isCompared ? text.split(/\r?\n/) : [`Body with SHA-256 ${bodySha256}`]),
  ].map((line) => line.slice(0, MAX_LINE_CHARACTERS))
}

function formatted(text: string): string {
  try {
    JSON.parse(text)
    return indented(text, MAX_BODY_CHARACTERS)
  } catch {
    return text
  }
}
