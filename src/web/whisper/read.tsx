/** The page that reads a secret. It sends no request before the person asks for it. */
import './whisper.css'
import { useState } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import { utf8Text } from '../../lib/bytes.ts'
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
import { type Fields, Form, Input } from '../ui/field.tsx'
import { mount } from '../ui/overlay.tsx'
import { Notice, Pre, StepHeading, Ticking, useGuard } from '../ui/show.tsx'
import { codeIn } from './code.ts'

/** The service answers so for each secret that a switch holds shut: its reader learns nothing of the monitor. */
const SHUT_MS = 60_000

const REFUSALS: Record<string, string> = {
  'not found':
    'This code reads nothing: its reads are used, it was destroyed, it expired, or it never existed. Ask its sender for a new one.',
  'service unreachable': 'The answer did not arrive. It may have used a read.',
}
const OTHER_UNOPENED =
  'The first secret has used a read and is not open yet. Open the other code in a new tab.'

/** From when it can be read, and whether its sender set that time. */
type Early = { opensAt: number; isTimed: boolean }

function Page() {
  const [opened, setOpened] = useState<OpenedWhisper | null>(null)
  return (
    <div class="stack loose narrow">
      <h1>Read a secret</h1>
      {opened ? <Opened opened={opened} /> : <Reader onOpened={setOpened} />}
    </div>
  )
}

function Reader({ onOpened }: { onOpened: (opened: OpenedWhisper) => void }) {
  const [text, setText] = useState('')
  const [early, setEarly] = useState<Early | null>(null)
  /** What used a read stays until it opens: neither a wrong password nor a code without its end uses another. */
  const [fetched, setFetched] = useState<{ readToken: string; bytes: Uint8Array } | null>(null)
  useGuard(() => fetched !== null)
  const { code } = codeIn(text)

  async function reveal(field: Fields): Promise<string | undefined> {
    const { code, problem } = codeIn(text)
    if (code === null) return problem
    setEarly(null)
    const { publicId, readToken, key, hasPassword } = code
    if (fetched && fetched.readToken !== readToken) return OTHER_UNOPENED
    let bytes = fetched?.bytes
    try {
      bytes ??= await service.getBytes({ path: `/w/${publicId}`, token: readToken })
    } catch (error) {
      if (!(error instanceof MayflyError) || error.status !== 425) throw error
      const wait = (error.retryAfterSeconds ?? 0) * 1000
      setEarly({ opensAt: now.peek() + wait, isTimed: wait > SHUT_MS })
      return undefined
    }
    setFetched({ readToken, bytes })
    try {
      onOpened(await openWhisper(bytes, key, hasPassword ? field('password') : undefined))
      return undefined
    } catch (error) {
      if (!(error instanceof UnreadableWhisper)) reportError(error)
      return hasPassword
        ? 'Most likely the password is wrong.'
        : 'The code is not whole or not right, or the content was changed.'
    }
  }

  return (
    <Form
      card
      label="Read a secret"
      action="Reveal it"
      onSubmit={reveal}
      explain={refusalOf}
      note="Nothing is fetched until you say so. It is decrypted in this page and shown as plain text."
    >
      <Input
        label="Share code"
        hint="Paste the code, or the whole message that it came in."
        rows={4}
        class="mono"
        required
        value={text}
        onText={(next) => {
          setText(next)
          setEarly(null)
        }}
      />
      {code?.hasPassword && <Input label="Password" name="password" type="password" required />}
      {fetched ? (
        <p>One read was used. Trying again uses no other. Closing this tab loses the content.</p>
      ) : (
        <p>
          Revealing it uses <strong>one read</strong>, which may be the last one.
        </p>
      )}
      {early && <NotYet {...early} />}
    </Form>
  )
}

function refusalOf(error: unknown): string {
  const phrase = error instanceof MayflyError ? error.phrase : ''
  return REFUSALS[phrase] ?? reasonOf(error)
}

/** Counts down to the opening. The service says how long, since this computer's clock may be wrong. */
function NotYet({ opensAt, isTimed }: Early) {
  function left(at: number): string {
    if (opensAt > at)
      return isTimed ? duration(opensAt - at) : `Ask again in ${duration(opensAt - at)}`
    return isTimed ? 'It can be opened now.' : 'Ask again now.'
  }
  const why = isTimed
    ? `Its sender set a time: it opens on ${when(new Date(opensAt).toISOString())}.`
    : 'Its sender set a time, or bound it to a switch that opens when a monitor falls silent.'
  const countdown = (
    <span class="countdown number" role="timer">
      <Ticking text={left} />
    </span>
  )
  return (
    <Notice action={countdown}>
      <span role="status">Not yet. {why} No read was used, and asking early costs nothing.</span>
    </Notice>
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
    <section class="card stack">
      <StepHeading level="h2">{name === null ? 'The secret' : plainly(name)}</StepHeading>
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
      </div>
      <p class="small">
        <a href="/whisper">Write a secret yourself</a>
      </p>
    </section>
  )
}

if (globalThis.isSecureContext) mount(<Page />)
else
  mount(
    <Notice kind="bad">Browsers decrypt on HTTPS pages alone. Open this page over HTTPS.</Notice>,
  )
