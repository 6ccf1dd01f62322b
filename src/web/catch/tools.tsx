/** What one does with a request: check its signature, send it again, compare it with another. */
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { eventBody, toCurl } from '../../client/export.ts'
import type { CatchEvent } from '../../client/index.ts'
import { guessProvider, verifySignature } from '../../client/signature.ts'
import { toFetch, toHttpie, toPython } from '../../client/snippets.ts'
import { HMAC_ALGORITHMS, type HmacAlgorithm } from '../../protocol/signatures/mac.ts'
import type { SignatureProvider, SignatureRules } from '../../protocol/signatures/signatures.ts'
import { textOf } from '../content/charset.ts'
import { type Change, diffLines } from '../content/diff.ts'
import { jsonLines } from '../content/json-lines.ts'
import { mediaOf } from '../content/media.ts'
import { plainly } from '../lib/foreign.ts'
import { plural, time } from '../lib/format.ts'
import { Choice } from '../ui/button.tsx'
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
          <div class="pairs">
            <Input label="Header" name="header" required placeholder="X-Signature" />
            <Input label="Prefix" name="prefix" placeholder="sha256=" />
            <Select label="Hash" name="algorithm" options={HASHES} chosen="sha256" />
            <Select label="Encoding" name="encoding" options={['hex', 'base64']} />
          </div>
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
const WRITERS = { curl: toCurl, fetch: toFetch, HTTPie: toHttpie, Python: toPython } as const
type Writer = keyof typeof WRITERS
const TARGET = 'http://localhost:3000'
/** As chosen last, for the next request too. */
const typed = { target: signal(TARGET), writer: signal<Writer>('curl') }

/** The request as code that sends it again. The page itself connects to nobody but its own service. */
export function Replay({ event }: { event: CatchEvent }) {
  const writer = typed.writer.value
  const url = typed.target.value.trim() || TARGET
  const code = WRITERS[writer](event, { url })
  const cli = `mayfly catch replay <name> ${event.sequence} --to ${url}`
  return (
    <>
      <div class="row between">
        <div class="target">
          <Input
            label="Target"
            hint="The path and the query of the request are added."
            type="url"
            value={typed.target.value}
            onText={(text) => {
              typed.target.value = text
            }}
          />
        </div>
        <Choice
          label="Language"
          names={Object.keys(WRITERS) as Writer[]}
          chosen={writer}
          onChoose={(name) => {
            typed.writer.value = name
          }}
        />
      </div>
      <CodeBox
        text={code}
        label={`the request for ${writer}`}
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
/** Lines that did not change, before and after one that did. */
const CONTEXT = 2
const MAX_SHOWN_LINES = 1_000
const MAX_LINE_CHARACTERS = 1_000
const MAX_BODY_CHARACTERS = 1_000_000

/** Compares a request with another one, line by line. */
export function Compare({ event, others }: { event: CatchEvent; others: readonly CatchEvent[] }) {
  const choices = others.filter(({ id }) => id !== event.id).slice(0, MAX_OTHERS)
  // What usually is asked: what is new since the one before?
  const before = choices.find(({ sequence }) => sequence < event.sequence) ?? choices[0]
  const [chosen, choose] = useState(before?.id)
  const other = choices.find(({ id }) => id === chosen) ?? before
  if (!other) return <p class="quiet">There is no other request in the list.</p>
  return (
    <>
      <Select
        label="The other request"
        options={Object.fromEntries(choices.map((each) => [each.id, titleOf(each)]))}
        chosen={other.id}
        onChoose={choose}
      />
      <Comparison before={other} after={event} />
    </>
  )
}

const titleOf = ({ sequence, method, path, receivedAt }: CatchEvent): string =>
  `#${sequence} ${method} ${plainly((path || '/').slice(0, MAX_PATH_CHARACTERS))}, ${time(receivedAt)}`

function Comparison({ before, after }: { before: CatchEvent; after: CatchEvent }) {
  const parts: [name: string, changes: Change[] | string][] = [
    ['request', diffLines([requestLine(before)], [requestLine(after)]) ?? []],
    ['headers', diffLines(headerLines(before), headerLines(after)) ?? 'Too many to compare.'],
    ['body', bodyChanges(before, after)],
  ]
  const same = parts.filter(([, changes]) => !isChanged(changes)).map(([name]) => name)
  const remarks = parts.flatMap(([, changes]) => (typeof changes === 'string' ? [changes] : []))
  const drawn = parts.flatMap(([name, changes]) =>
    typeof changes !== 'string' && isChanged(changes)
      ? [[name, withContext(changes)] as const]
      : [],
  )
  const also = same.length > 0 ? ` The same: ${same.join(', ')}.` : ''
  return (
    <>
      <p role="status">
        {same.length === parts.length
          ? 'Method, path, headers and body are the same.'
          : `− is in #${before.sequence}, + is in #${after.sequence}.${also}`}
      </p>
      {remarks.map((remark) => (
        <p key={remark}>{remark}</p>
      ))}
      {drawn.length > 0 && (
        <Pre kind="content diff" label="Differences">
          {drawn.map(([name, lines], index) => (
            <span key={name}>
              {index > 0 && '\n'}
              {lines.map(({ kind, text }, at) => {
                const Tag = kind === 'added' ? 'ins' : kind === 'removed' ? 'del' : 'span'
                return <Tag key={at} class={kind === 'skip' ? 'quiet' : ''}>{`${text}\n`}</Tag>
              })}
            </span>
          ))}
        </Pre>
      )}
    </>
  )
}

const isChanged = (changes: Change[] | string): boolean =>
  typeof changes === 'string' || changes.some(({ kind }) => kind !== 'same')

const requestLine = ({ method, path, query }: CatchEvent): string =>
  `${method} ${path || '/'}${query === '' ? '' : `?${query}`}`

/** Sorted by name: proxies change the order. */
function headerLines({ headers }: CatchEvent): string[] {
  return headers.map(({ name, value }) => `${name.toLowerCase()}: ${value}`).sort()
}

function bodyChanges(before: CatchEvent, after: CatchEvent): Change[] | string {
  if (before.bodySha256 === after.bodySha256) return []
  const [old, fresh] = [bodyLines(before), bodyLines(after)]
  if (!old || !fresh) {
    return 'The bodies differ. Only texts of up to 1 MB are compared.'
  }
  return diffLines(old, fresh) ?? 'The bodies differ in too many lines to compare.'
}

/** JSON as it is shown; any other text as it was sent. */
function bodyLines(event: CatchEvent): string[] | null {
  if (event.bodyBytes > MAX_BODY_CHARACTERS) return null
  const text = textOf(eventBody(event), mediaOf(event.contentType))?.text
  if (text === undefined) return null
  try {
    JSON.parse(text)
  } catch {
    return text.split(/\r?\n/)
  }
  return Array.from(
    jsonLines(text),
    ({ depth, tokens }) =>
      '  '.repeat(Math.min(depth, 40)) + tokens.map((token) => token.text).join(''),
  )
}

type DiffLine = { kind: Change['kind'] | 'skip'; text: string }
const SIGNS = { same: ' ', removed: '−', added: '+' }

/** The changed lines and those around them. */
function withContext(changes: readonly Change[]): DiffLine[] {
  const isNear = changes.map((_, index) =>
    changes
      .slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1)
      .some(({ kind }) => kind !== 'same'),
  )
  const lines: DiffLine[] = []
  let skipped = 0
  const skip = (count: number): void => {
    if (count > 0) lines.push({ kind: 'skip', text: `  … ${plural(count, 'line')}` })
  }
  for (const [index, { kind, line }] of changes.entries()) {
    if (!isNear[index]) {
      skipped++
      continue
    }
    skip(skipped)
    skipped = 0
    if (lines.length >= MAX_SHOWN_LINES) {
      skip(changes.length - index)
      return lines
    }
    const isLong = line.length > MAX_LINE_CHARACTERS
    const text = `${plainly(line.slice(0, MAX_LINE_CHARACTERS))}${isLong ? '…' : ''}`
    lines.push({ kind, text: `${SIGNS[kind]} ${text}` })
  }
  skip(skipped)
  return lines
}
