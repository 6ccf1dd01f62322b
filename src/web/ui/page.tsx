/** Renders a page, with what stands above it. */
import './base.css'
import { type ComponentChildren, render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { announced, closeToast, type Dialog, dialogs, openDialog, shownToast } from './overlay.ts'
import { Button } from './ui.tsx'

/** @param id of the place in the HTML file, whose content is replaced. */
export function mount(page: ComponentChildren, id = 'app'): void {
  const place = document.getElementById(id)
  if (!place) throw new Error(`the page has no #${id}`)
  place.replaceChildren()
  render(page, place)
  const above = document.getElementById('overlays')
  if (above && !above.hasChildNodes()) render(<Overlays />, above)
}

/** Asks before what cannot be undone. Resolves to whether the person agrees. */
export function confirmed(
  title: string,
  { body, action, keep = 'Cancel' }: { body: string; action: string; keep?: string },
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const agree = (close: () => void) => () => {
    resolve(true)
    close()
  }
  const content = (close: () => void) => (
    <>
      <p>{body}</p>
      <div class="row">
        <Button onClick={close}>{keep}</Button>
        <Button danger onClick={agree(close)}>
          {action}
        </Button>
      </div>
    </>
  )
  openDialog(title, content, () => resolve(false))
  return promise
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
