/** What leaves the page: by the clipboard, and as a file. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button, type ButtonProps } from './button.tsx'
import { Icon } from './icons.tsx'
import { announce, openDialog } from './overlay.tsx'
import { Pre } from './show.tsx'

const COPIED_MS = 1_600

export type CopyProps = Pick<ButtonProps, 'label' | 'weight' | 'size'> & {
  text: string | (() => string)
  /** Without any, it shows its icon alone. */
  children?: string
  onCopied?: (() => void) | undefined
}

/** Copies, and confirms it to eyes and ears; or shows the text to be copied by hand. */
export function CopyButton({ text, children, label, size, ...rest }: CopyProps) {
  const isBare = children === undefined
  const { weight = isBare ? 'quiet' : 'secondary', onCopied } = rest
  const [isCopied, setCopied] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  async function copy(): Promise<void> {
    const content = typeof text === 'string' ? text : text()
    if (!(await toClipboard(content))) {
      openDialog('Copy it by hand', (close) => (
        <ByHand text={content} onCopied={onCopied} close={close} />
      ))
      return
    }
    announce('Copied')
    onCopied?.()
    setCopied(true)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setCopied(false), COPIED_MS)
  }
  return (
    <button
      type="button"
      class={`btn copy ${weight} ${size ?? ''} ${isBare ? 'icon-only' : ''}`}
      aria-label={isCopied ? 'Copied' : label}
      data-copied={isCopied ? '' : undefined}
      onClick={copy}
    >
      <Icon name={isCopied ? 'check' : 'copy'} />
      {!isBare && (
        <span>
          <span class="label">{children}</span>
          <span class="done">Copied</span>
        </span>
      )}
    </button>
  )
}

async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // The context is not secure, or the browser does not allow it.
    const area = document.createElement('textarea')
    area.className = 'visually-hidden'
    area.ariaHidden = 'true'
    area.value = text
    document.body.append(area)
    area.select()
    const isCopied = document.execCommand('copy')
    area.remove()
    return isCopied
  }
}

function ByHand(props: { text: string; onCopied: (() => void) | undefined; close: () => void }) {
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => area.current?.select(), [])
  return (
    <>
      <p>This browser blocks copying. The text is selected: copy it yourself.</p>
      <textarea
        ref={area}
        readOnly
        rows={6}
        aria-label="The text"
        value={props.text}
        onCopy={props.onCopied}
      />
      <div class="row">
        <Button onClick={props.close}>Close</Button>
      </div>
    </>
  )
}

/** Code with a button that copies it. `label` says what it is; `shown` is less of a long one. */
export function CodeBox({
  text,
  label,
  wrapped = false,
  shown = text,
  onCopied,
}: {
  text: string
  label: string
  wrapped?: boolean
  shown?: string
} & Pick<CopyProps, 'onCopied'>) {
  return (
    <div class={wrapped ? 'code wrapped' : 'code'}>
      <Pre label={label}>{shown}</Pre>
      <CopyButton text={text} label={`Copy ${label}`} onCopied={onCopied} />
    </div>
  )
}
