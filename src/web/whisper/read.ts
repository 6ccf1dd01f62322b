/** The page that reads a WHISPER. It sends no request before the user asks for it. */
import { MayflyError } from '../../client/errors.ts'
import type { WhisperCode } from '../../protocol/whisper-code.ts'
import { openWhisper, UnreadableWhisper } from '../../protocol/whisper-envelope.ts'
import { guardTab } from '../buying/guard.ts'
import { button, field, notice, working } from '../components.ts'
import { byId, type Child, el, fill } from '../dom.ts'
import { moment, remaining, sentence } from '../format.ts'
import { service } from '../service.ts'
import { codeIn } from './code.ts'
import { contentView } from './opened.ts'

const place = byId('reader')
/** Fetched bytes that are not decrypted yet. They cost a read, and a closed tab would lose them. */
let fetched: Uint8Array | null = null
let ticking: ReturnType<typeof setInterval> | undefined

guardTab(() => fetched !== null)
const linked = takeFromAddress()
addEventListener('hashchange', () => {
  const text = takeFromAddress()
  if (text !== null && fetched === null) take(text)
})
if (!globalThis.isSecureContext) {
  const why = 'Browsers decrypt on HTTPS pages alone. Open this page over HTTPS.'
  fill(place, notice('bad', el('p', {}, why)))
} else if (linked === null) showAsking()
else take(linked)

/**
 * Reads a code after the # of the address, and removes it from the address bar and the history at once.
 * Pages no longer make such links, but old links still work.
 */
function takeFromAddress(): string | null {
  const { hash } = location
  if (!hash.includes('mayfly-whisper')) return null
  history.replaceState(null, '', location.pathname)
  try {
    return decodeURIComponent(hash)
  } catch {
    return hash
  }
}

function take(text: string): void {
  const { code, problem } = codeIn(text)
  if (code) showWaiting(code)
  else showAsking(text, problem)
}

function showAsking(pasted = '', problem?: string): void {
  const problems = el('div', { class: 'problems' })
  const text = el('textarea', { rows: '4', spellcheck: 'false', autocomplete: 'off' })
  text.value = pasted
  text.addEventListener('input', (event) => {
    // The problem was with the text that was there before.
    fill(problems)
    const { code } = codeIn(text.value)
    if (code && !isTyped(event)) showWaiting(code)
  })
  if (problem !== undefined) fill(problems, notice('bad', el('p', {}, problem)))
  form(
    () => take(text.value),
    problems,
    field('Share code', text),
    submit('Continue'),
    el(
      'p',
      { class: 'small quiet' },
      'Paste the code, or the whole message that it came in. Nothing is fetched until you say so.',
    ),
  )
}

/** Whether more may follow: the beginning of a code with a password is a code without one. */
const isTyped = (event: Event): boolean =>
  event instanceof InputEvent && (event.data?.length === 1 || event.inputType.startsWith('delete'))

function showWaiting(code: WhisperCode): void {
  const password = passwordInput()
  form(
    () => reveal(code, password.value),
    heading('A whisper is waiting'),
    el(
      'p',
      {},
      'Revealing uses ',
      el('strong', {}, 'one read'),
      ', which may be the only one. Nothing has been fetched yet.',
    ),
    code.hasPassword && field('Password', password),
    el(
      'div',
      { class: 'row' },
      submit('Reveal it'),
      button('Another code', () => showAsking()),
    ),
    el('p', { class: 'small quiet' }, 'Decrypted in this page, shown as plain text.'),
  )
}

async function reveal(code: WhisperCode, password: string): Promise<void> {
  fill(place, working('Fetching and decrypting', 'text'))
  try {
    fetched = await service.getBytes({ path: `/w/${code.publicId}`, token: code.readToken })
  } catch (error) {
    showRefused(code, { password, error })
    return
  }
  await open(code, fetched, password)
}

async function open(code: WhisperCode, bytes: Uint8Array, password: string): Promise<void> {
  fill(place, working('Decrypting', 'text'))
  try {
    const opened = await openWhisper(bytes, code.key, code.hasPassword ? password : undefined)
    fetched = null
    fill(place, contentView(opened))
    byId('step').focus()
  } catch (error) {
    if (!(error instanceof UnreadableWhisper)) reportError(error)
    showLocked(code, bytes)
  }
}

function showLocked(code: WhisperCode, bytes: Uint8Array): void {
  if (!code.hasPassword) {
    fetched = null
    step(
      heading('It does not open'),
      notice(
        'bad',
        el(
          'p',
          {},
          'The key in this code does not fit, or the whisper was changed on its way. The read is used. Ask the sender for a new one.',
        ),
      ),
      button('Another code', () => showAsking()),
    )
    return
  }
  const password = passwordInput()
  form(
    () => open(code, bytes, password.value),
    heading('It does not open yet'),
    notice(
      'warn',
      el('p', {}, 'Most likely the password is wrong. Trying again does not use another read.'),
    ),
    field('Password', password),
    submit('Try again'),
    el(
      'p',
      { class: 'small quiet' },
      'Keep this tab open: close it and you lose the content and the read.',
    ),
  )
}

type Refused = { password: string; error: unknown }

function showRefused(code: WhisperCode, { password, error }: Refused): void {
  if (error instanceof MayflyError && error.status === 425) {
    showEarly(code, { password, milliseconds: (error.retryAfterSeconds ?? 0) * 1000 })
    return
  }
  const phrase = error instanceof MayflyError ? error.phrase : ''
  const isGone = phrase === 'not found'
  step(
    heading('Not revealed'),
    notice('bad', el('p', {}, REFUSALS[phrase] ?? sentence(error))),
    el(
      'div',
      { class: 'row' },
      !isGone && button('Try again', () => reveal(code, password)),
      button('Another code', () => showAsking()),
    ),
  )
}

const REFUSALS: Record<string, string> = {
  'not found':
    'There is nothing to read with this code: all its reads are used, it has expired, or it never existed.',
  'service unreachable':
    'The answer did not arrive. If the service had sent it, the read is used; otherwise it is not.',
  'rate limited': 'Too many requests just now. No read was used; try again in a minute.',
}

/** What the service says for each whisper that a switch holds shut: its reader learns nothing of the monitor. */
const SHUT_MS = 60_000

type Early = { password: string; milliseconds: number }

/** Shows the time until the reveal. The service says how long, since this computer's clock may be wrong. */
function showEarly(code: WhisperCode, { password, milliseconds }: Early): void {
  const opensAt = Date.now() + milliseconds
  const left = el('p', { class: 'countdown number', role: 'timer' })
  const tick = (): void => {
    const now = opensAt - Date.now()
    left.textContent = now > 0 ? remaining(now) : 'It can be opened now.'
  }
  step(
    heading('Not yet'),
    ...(milliseconds > SHUT_MS
      ? [
          el(
            'p',
            {},
            `Its sender set a time: it opens on ${moment(new Date(opensAt).toISOString())}.`,
          ),
        ]
      : [
          el(
            'p',
            {},
            'Its sender set a time, or bound it to a switch: then it stays shut until a monitor falls silent, and what is counted here begins anew.',
          ),
        ]),
    left,
    el(
      'p',
      {},
      'No read was used. Asking early costs nothing; from then on it reveals the whisper.',
    ),
    el(
      'div',
      { class: 'row' },
      button('Ask again', () => reveal(code, password), { kind: 'primary' }),
      button('Another code', () => showAsking()),
    ),
  )
  tick()
  ticking = setInterval(tick, 1_000)
}

function step(...children: Child[]): void {
  form(() => {}, ...children)
}

function form(onSubmit: () => unknown, ...children: Child[]): void {
  clearInterval(ticking)
  const submitted = (event: Event): void => {
    event.preventDefault()
    onSubmit()
  }
  fill(place, el('form', { class: 'card stack', onsubmit: submitted }, ...children))
  document.getElementById('step')?.focus()
}

function heading(text: string): HTMLElement {
  return el('h2', { tabindex: '-1', id: 'step' }, text)
}

function submit(label: string): HTMLElement {
  return el('button', { type: 'submit', class: 'button primary' }, label)
}

function passwordInput(): HTMLInputElement {
  return el('input', { type: 'password', autocomplete: 'off', required: true })
}
