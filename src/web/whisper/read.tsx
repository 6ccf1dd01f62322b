/** The page that reads a secret. It sends no request before the person asks for it. */
import './whisper.css'
import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import { utf8Text } from '../../lib/bytes.ts'
import type { WhisperCode } from '../../protocol/whisper-code.ts'
import {
  type OpenedWhisper,
  openWhisper,
  UnreadableWhisper,
} from '../../protocol/whisper-envelope.ts'
import { download } from '../lib/download.ts'
import { plainly } from '../lib/foreign.ts'
import { bytes, duration, reasonOf, when } from '../lib/format.ts'
import { now, service } from '../lib/service.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Field, Form, Input } from '../ui/field.tsx'
import { mount } from '../ui/overlay.tsx'
import { Failure, Notice, Pre, StepHeading, Ticking, useGuard, Working } from '../ui/show.tsx'
import { codeIn } from './code.ts'

type Step =
  | { at: 'asking'; pasted: string; problem: string | null }
  | { at: 'waiting'; code: WhisperCode }
  | { at: 'working'; what: string }
  | { at: 'locked'; code: WhisperCode; fetched: Uint8Array }
  | { at: 'unreadable' }
  | { at: 'early'; code: WhisperCode; password: string; opensAt: number; wait: number }
  | { at: 'refused'; code: WhisperCode; password: string; error: unknown }
  | { at: 'opened'; opened: OpenedWhisper }

const ASKING: Step = { at: 'asking', pasted: '', problem: null }
const step = signal<Step>(ASKING)

function stepFor(text: string): Step {
  const { code, problem } = codeIn(text)
  return code ? { at: 'waiting', code } : { at: 'asking', pasted: text, problem }
}

async function reveal(code: WhisperCode, password: string): Promise<void> {
  step.value = { at: 'working', what: 'Fetching and decrypting' }
  try {
    const path = `/w/${code.publicId}`
    await open(code, await service.getBytes({ path, token: code.readToken }), password)
  } catch (error) {
    const isEarly = error instanceof MayflyError && error.status === 425
    const wait = isEarly ? (error.retryAfterSeconds ?? 0) * 1000 : 0
    step.value = isEarly
      ? { at: 'early', code, password, opensAt: now.value + wait, wait }
      : { at: 'refused', code, password, error }
  }
}

async function open(code: WhisperCode, fetched: Uint8Array, password: string): Promise<void> {
  try {
    const opened = await openWhisper(fetched, code.key, code.hasPassword ? password : undefined)
    step.value = { at: 'opened', opened }
  } catch (error) {
    if (!(error instanceof UnreadableWhisper)) reportError(error)
    step.value = code.hasPassword ? { at: 'locked', code, fetched } : { at: 'unreadable' }
  }
}

const askAgain = (): void => {
  step.value = ASKING
}

function Page() {
  useGuard(() => step.value.at === 'locked')
  return (
    <div class="stack loose narrow">
      <h1>Read a secret</h1>
      <Shown />
    </div>
  )
}

function Shown() {
  const shown = step.value
  switch (shown.at) {
    case 'asking':
      return <Asking key={shown.pasted} pasted={shown.pasted} problem={shown.problem} />
    case 'waiting':
      return <Waiting code={shown.code} />
    case 'working':
      return <Working>{shown.what}…</Working>
    case 'locked':
      return <Locked code={shown.code} fetched={shown.fetched} />
    case 'unreadable':
      return (
        <Card heading="It does not open">
          <Notice kind="bad">
            The key in this code is wrong, or the content was changed. A read was used. Ask the
            sender for a new secret.
          </Notice>
          <div class="row">
            <AnotherCode />
          </div>
        </Card>
      )
    case 'early':
      return <Early {...shown} />
    case 'refused':
      return <Refused {...shown} />
    case 'opened':
      return <Opened opened={shown.opened} />
  }
}

function Card({ heading, children }: { heading: string; children: ComponentChildren }) {
  return (
    <section class="card stack">
      <Heading>{heading}</Heading>
      {children}
    </section>
  )
}

const Heading = ({ children }: { children: string }) => (
  <StepHeading key={children} level="h2">
    {children}
  </StepHeading>
)

const AnotherCode = () => <Button onClick={askAgain}>Another code</Button>

function Asking({ pasted, problem }: { pasted: string; problem: string | null }) {
  const shown = useSignal(problem)
  const area = useRef<HTMLTextAreaElement>(null)
  // What is missing is typed at the end.
  useEffect(() => area.current?.setSelectionRange(pasted.length, pasted.length), [pasted])
  function changed(event: InputEvent & { currentTarget: HTMLTextAreaElement }): void {
    shown.value = null
    const { code } = codeIn(event.currentTarget.value)
    if (code && !isTyped(event)) step.value = { at: 'waiting', code }
  }
  return (
    <Form
      card
      label="Read a secret"
      action="Continue"
      onSubmit={(field) => {
        const next = stepFor(field('code'))
        step.value = next
        if (next.at === 'asking') shown.value = next.problem
      }}
      note="Nothing is fetched until you say so."
    >
      {shown.value !== null && <Notice kind="bad">{shown.value}</Notice>}
      <Field label="Share code" hint="Paste the code, or the whole message that it came in.">
        <textarea
          ref={area}
          name="code"
          rows={4}
          class="mono"
          spellcheck={false}
          autocomplete="off"
          defaultValue={pasted}
          onInput={changed}
        />
      </Field>
    </Form>
  )
}

/** Whether more may follow: the beginning of a code with a password is a code without one. */
const isTyped = (event: InputEvent): boolean =>
  event.data?.length === 1 || event.inputType?.startsWith('delete') === true

function Waiting({ code }: { code: WhisperCode }) {
  return (
    <Form
      card
      label="Reveal the secret"
      heading={<Heading>A secret is waiting</Heading>}
      action="Reveal it"
      onSubmit={(field) => reveal(code, field('password'))}
      more={<AnotherCode />}
      note="It is decrypted in this page and shown as plain text."
    >
      <p>
        Revealing it uses <strong>one read</strong>, which may be the last one. Nothing has been
        fetched yet.
      </p>
      {code.hasPassword && <Password />}
    </Form>
  )
}

const Password = () => <Input label="Password" name="password" type="password" required />

function Locked({ code, fetched }: { code: WhisperCode; fetched: Uint8Array }) {
  return (
    <Form
      card
      label="Open the secret"
      heading={<Heading>It does not open yet</Heading>}
      action="Try again"
      onSubmit={(field) => open(code, fetched, field('password'))}
      note="Keep this tab open: closing it loses the content and the read."
    >
      <Notice kind="bad">
        Most likely the password is wrong. Trying again uses no other read.
      </Notice>
      <Password />
    </Form>
  )
}

const REFUSALS: Record<string, string> = {
  'not found':
    'This code reads nothing: its reads are used, it was destroyed, it expired, or it never existed. Ask its sender for a new one.',
  'service unreachable': 'The answer did not arrive. It may have used a read.',
}

function Refused({ code, password, error }: Extract<Step, { at: 'refused' }>) {
  const phrase = error instanceof MayflyError ? error.phrase : ''
  const says = REFUSALS[phrase] ?? reasonOf(error)
  return (
    <Card heading="Not revealed">
      {phrase === 'not found' ? (
        <Notice kind="bad">{says}</Notice>
      ) : (
        <Failure error={error} says={says} onAgain={() => reveal(code, password)} />
      )}
      <div class="row">
        <AnotherCode />
      </div>
    </Card>
  )
}

/** The service answers so for each secret that a switch holds shut: its reader learns nothing of the monitor. */
const SHUT_MS = 60_000

/** Counts down to the opening. The service says how long, since this computer's clock may be wrong. */
function Early({ code, password, opensAt, wait }: Extract<Step, { at: 'early' }>) {
  const isTimed = wait > SHUT_MS
  function left(at: number): string {
    if (opensAt > at)
      return isTimed ? duration(opensAt - at) : `Ask again in ${duration(opensAt - at)}`
    return isTimed ? 'It can be opened now.' : 'Ask again now.'
  }
  return (
    <Card heading="Not yet">
      <p>
        {isTimed
          ? `Its sender set a time: it opens on ${when(new Date(opensAt).toISOString())}.`
          : 'Its sender set a time, or bound it to a switch that opens when a monitor falls silent.'}
      </p>
      <p class="countdown number" role="timer">
        <Ticking text={left} />
      </p>
      <p>No read was used. Asking early costs nothing.</p>
      <div class="row">
        <Button weight="primary" onClick={() => reveal(code, password)}>
          Try again
        </Button>
        <AnotherCode />
      </div>
    </Card>
  )
}

/** Only this much is drawn. The download has all of the content. */
const MAX_SHOWN_CHARACTERS = 200_000
const TEXT = /^(?:text\/|application\/(?:json|xml|yaml|toml)\b)/

/** Text as text, anything else as a download. Its sender is a stranger. */
function Opened({ opened: { data, name, mediaType } }: { opened: OpenedWhisper }) {
  const isText = mediaType === null ? name === null : TEXT.test(mediaType)
  const text = isText ? utf8Text(data) : null
  const isCut = text !== null && text.length > MAX_SHOWN_CHARACTERS
  const shown = text === null ? '' : plainly(text.slice(0, MAX_SHOWN_CHARACTERS))
  const called = mediaType === null ? '' : `, sent as ${mediaType}`
  return (
    <Card heading={name === null ? 'The secret' : plainly(name)}>
      <p class="small quiet">
        {`${bytes(data.length)}${called}. One read was used. Closing this tab closes it.`}
      </p>
      {text === null ? (
        <p>This page shows no files. Download it, and open it with care.</p>
      ) : (
        <Pre kind="content" dir="auto" label="The text">
          {isCut ? `${shown}\n… the rest is in the download` : shown}
        </Pre>
      )}
      <div class="row">
        {text !== null && (
          <CopyButton text={text} weight="primary">
            Copy the text
          </CopyButton>
        )}
        <Button
          icon="download"
          weight={text === null ? 'primary' : 'secondary'}
          onClick={() => {
            const ending = text === null ? 'bin' : 'txt'
            // The claimed type is ignored, because a browser might open such a file.
            download(name ?? `secret.${ending}`, data, 'application/octet-stream')
          }}
        >
          Download
        </Button>
        <Button href="/whisper" weight="quiet">
          Write one yourself
        </Button>
      </div>
    </Card>
  )
}

if (globalThis.isSecureContext) mount(<Page />)
else
  mount(
    <Notice kind="bad">Browsers decrypt on HTTPS pages alone. Open this page over HTTPS.</Notice>,
  )
