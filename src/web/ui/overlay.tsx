/** What stands above a page: one toast, dialogs, and what screen readers are told; and how a page is rendered below. */
import './base.css'
import { signal } from '@preact/signals'
import { type ComponentChildren, render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { sentence } from '../lib/format.ts'
import { Button } from './button.tsx'

/** Long enough to read a short sentence twice, and to reach its button. */
const TOAST_MS = 5_000

type Toast = { text: string; action?: { label: string; run: () => unknown } | undefined }
type Dialog = {
  id: number
  title: string
  body: (close: () => void) => ComponentChildren
  onClosed(): void
}

const shownToast = signal<Toast | null>(null)
const dialogs = signal<readonly Dialog[]>([])
const announced = signal({ text: '', count: 0 })
let ending: ReturnType<typeof setTimeout> | undefined
let opened = 0

/** Shows a message for a few seconds, in place of the one before. */
export function toast(text: string, action?: Toast['action']): void {
  clearTimeout(ending)
  shownToast.value = { text, action }
  ending = setTimeout(closeToast, TOAST_MS)
}

export function closeToast(): void {
  clearTimeout(ending)
  shownToast.value = null
}

/** Tells screen readers alone. */
export function announce(text: string): void {
  announced.value = { text, count: announced.value.count + 1 }
}

/** Runs work, and shows the reason if it fails. */
export async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    toast(sentence(error))
  }
}

/** Opens a modal dialog, until the person or `close` closes it. */
export function openDialog(
  title: string,
  body: Dialog['body'],
  onClosed: () => void = () => {},
): void {
  opened++
  dialogs.value = [...dialogs.value, { id: opened, title, body, onClosed }]
}

/** Asks, and resolves to whether the person agrees. */
export function confirmed(
  title: string,
  { body, action, keep = 'Cancel' }: { body: string; action: string; keep?: string },
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  function agree(close: () => void): void {
    resolve(true)
    close()
  }
  openDialog(
    title,
    (close) => (
      <>
        <p>{body}</p>
        <div class="row">
          <Button onClick={close}>{keep}</Button>
          <Button danger onClick={() => agree(close)}>
            {action}
          </Button>
        </div>
      </>
    ),
    () => resolve(false),
  )
  return promise
}

/** Asks before what cannot be undone. If the person agrees it is done, and the reason is shown if it fails. */
export async function onConsent(
  title: string,
  question: { body: string; action: string },
  work: () => unknown,
): Promise<void> {
  if (await confirmed(title, question)) await attempt(async () => work())
}

/** @param id of the place in the HTML file, whose content is replaced. */
export function mount(page: ComponentChildren, id = 'app'): void {
  const place = document.getElementById(id)
  if (!place) throw new Error(`the page has no #${id}`)
  place.replaceChildren()
  render(page, place)
  const above = document.getElementById('overlays')
  if (above && !above.hasChildNodes()) render(<Overlays />, above)
}

function Overlays() {
  const shown = shownToast.value
  function act(): void {
    closeToast()
    shown?.action?.run()
  }
  return (
    <>
      <div class="toast" role="status">
        {shown && (
          <p>
            {shown.text}
            {shown.action && <Button onClick={act}>{shown.action.label}</Button>}
          </p>
        )}
      </div>
      <p class="visually-hidden" id="announcer" role="status">
        <span key={announced.value.count}>{announced.value.text}</span>
      </p>
      {dialogs.value.map((each) => (
        <Modal key={each.id} {...each} />
      ))}
    </>
  )
}

function Modal({ id, title, body, onClosed }: Dialog) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => ref.current?.showModal(), [])
  function closed(): void {
    dialogs.value = dialogs.value.filter((each) => each.id !== id)
    onClosed()
  }
  return (
    <dialog ref={ref} aria-labelledby={`dialog-${id}`} onClose={closed}>
      <div class="stack">
        <h2 id={`dialog-${id}`}>{title}</h2>
        {body(() => ref.current?.close())}
      </div>
    </dialog>
  )
}
