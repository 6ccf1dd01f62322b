/** The components that all pages are made of. `base.css` has their looks; /dev shows each with its states. */
import { signal } from '@preact/signals'
import { type ComponentChildren, cloneElement, type VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { encodeQR } from 'qr'
import { now } from '../lib/service.ts'
import { Icon, type IconName } from './icons.tsx'
import { announce, openDialog } from './overlay.ts'

const COPIED_MS = 1_600

export type ButtonProps = {
  children?: ComponentChildren
  onClick?: (() => unknown) | undefined
  weight?: 'primary' | 'secondary' | 'quiet' | undefined
  danger?: boolean | undefined
  icon?: IconName | undefined
  /** Its name, where the text alone does not say enough. */
  label?: string | undefined
  disabled?: boolean | undefined
  pressed?: boolean | undefined
  /** Higher, or as wide as its place. */
  size?: 'large' | 'wide' | 'large wide' | undefined
  submits?: boolean | undefined
  tabIndex?: number
}

export function Button({ children, icon, weight = 'secondary', danger, ...rest }: ButtonProps) {
  const { label, disabled, pressed, size = '', submits, onClick, tabIndex } = rest
  return (
    <button
      type={submits ? 'submit' : 'button'}
      class={`btn ${weight} ${danger ? 'danger' : ''} ${size}`}
      aria-label={label}
      aria-pressed={pressed}
      disabled={disabled}
      tabIndex={tabIndex}
      onClick={onClick}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

export type IconButtonProps = Pick<ButtonProps, 'onClick' | 'danger' | 'disabled' | 'pressed'>

export function IconButton({
  icon,
  label,
  ...rest
}: { icon: IconName; label: string } & IconButtonProps) {
  return (
    <button
      type="button"
      class={`btn quiet icon-only ${rest.danger ? 'danger' : ''}`}
      aria-label={label}
      title={label}
      aria-pressed={rest.pressed}
      disabled={rest.disabled}
      onClick={rest.onClick}
    >
      <Icon name={icon} />
    </button>
  )
}

export function LinkButton({
  href,
  children,
  weight = 'secondary',
  size,
  onClick,
}: Pick<ButtonProps, 'children' | 'weight' | 'size' | 'onClick'> & { href: string }) {
  return (
    <a class={`btn ${weight} ${size ?? ''}`} href={href} onClick={onClick}>
      {children}
    </a>
  )
}

export type CopyProps = {
  text: string | (() => string)
  children?: string
  label?: string
  weight?: ButtonProps['weight']
  size?: ButtonProps['size']
  /** Shows the icon alone; `label` names it. */
  isBare?: boolean
  onCopied?: () => void
}

/** Copies, and confirms it to eyes and ears. If the browser refuses, it shows the text to copy by hand. */
export function CopyButton({
  text,
  children = 'Copy',
  label,
  weight,
  size,
  isBare = false,
  onCopied,
}: CopyProps) {
  const [isCopied, setCopied] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  async function copy(): Promise<void> {
    if (!(await copied(typeof text === 'string' ? text : text(), onCopied))) return
    setCopied(true)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setCopied(false), COPIED_MS)
  }
  return (
    <button
      type="button"
      class={`btn copy ${isBare ? 'icon-only quiet' : (weight ?? 'secondary')} ${size ?? ''}`}
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

/** Copies a text, or shows it to be copied by hand. Resolves to whether the page has copied it. */
export async function copied(text: string, onCopied?: () => void): Promise<boolean> {
  if (!(await toClipboard(text))) {
    openDialog('Copy it by hand', (close) => (
      <ByHand text={text} onCopied={onCopied} close={close} />
    ))
    return false
  }
  announce('Copied')
  onCopied?.()
  return true
}

function ByHand({
  text,
  onCopied,
  close,
}: {
  text: string
  onCopied?: (() => void) | undefined
  close: () => void
}) {
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => area.current?.select(), [])
  return (
    <>
      <p>This browser blocks copying. The text is selected: copy it yourself.</p>
      <textarea ref={area} readOnly rows={6} aria-label="The text" value={text} onCopy={onCopied} />
      <div class="row">
        <Button onClick={close}>Close</Button>
      </div>
    </>
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

/** Code with a button that copies it. `label` says what it is; `shown` is less of a long one. */
export function CodeBox({
  text,
  label,
  wrapped = false,
  shown = text,
}: {
  text: string
  label: string
  wrapped?: boolean
  shown?: string
}) {
  return (
    <div class={wrapped ? 'code wrapped' : 'code'}>
      {/* With a tabindex, the keyboard can scroll wide code too. */}
      <pre tabIndex={0} role="group" aria-label={label}>
        <code>{shown}</code>
      </pre>
      <CopyButton text={text} label={`Copy ${label}`} isBare />
    </div>
  )
}

let ids = 0

/** An id that no other element has, in whichever place of the page it is rendered. */
function useOwnId(): string {
  const [id] = useState(() => {
    ids++
    return `field-${ids}`
  })
  return id
}

/** A label above a control, with a hint or what is wrong below it. */
export function Field({
  label,
  hint,
  problem,
  children,
}: {
  label: string
  hint?: ComponentChildren
  problem?: string | null | undefined
  children: VNode<{ id?: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }>
}) {
  const id = useOwnId()
  const told = problem ?? hint
  const described = told === undefined || told === null ? {} : { 'aria-describedby': `${id}-hint` }
  const invalid = problem ? { 'aria-invalid': true } : {}
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {cloneElement(children, { id, ...described, ...invalid })}
      {told && (
        <div id={`${id}-hint`} class={problem ? 'small bad' : 'hint'}>
          {told}
        </div>
      )}
    </div>
  )
}

export function Notice({
  kind,
  children,
  action,
}: {
  kind?: 'warn' | 'bad' | 'good'
  children: ComponentChildren
  action?: ComponentChildren
}) {
  return (
    <div class={`notice ${kind ?? ''}`} role={kind === 'bad' ? 'alert' : undefined}>
      <p>{children}</p>
      {action}
    </div>
  )
}

export type StateKind = 'good' | 'bad' | 'waiting' | 'over' | 'lost'

/** A state in words, with a mark that needs no colour. */
export function State({
  kind,
  children,
  busy = false,
  live = false,
}: {
  kind: StateKind
  children: ComponentChildren
  busy?: boolean
  live?: boolean
}) {
  return (
    <span
      class={busy ? 'state busy' : 'state'}
      data-state={kind}
      role={live ? 'status' : undefined}
    >
      {children}
    </span>
  )
}

export type TabItem = { id: string; title: ComponentChildren }

/** Tabs and the panel of the chosen one. The arrows move between them (WAI-ARIA Authoring Practices). */
export function Tabs({
  label,
  tabs,
  chosen,
  onChoose,
  children,
}: {
  label: string
  tabs: readonly TabItem[]
  chosen: string
  onChoose: (id: string) => void
  children: ComponentChildren
}) {
  const base = useOwnId()
  function moved(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const at = tabs.findIndex(({ id }) => id === chosen)
    const next = tabs[(at + step + tabs.length) % tabs.length]
    if (!next) return
    onChoose(next.id)
    document.getElementById(`${base}-${next.id}`)?.focus()
  }
  return (
    <div class="stack">
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={moved}>
        {tabs.map(({ id, title }) => (
          <button
            key={id}
            id={`${base}-${id}`}
            type="button"
            role="tab"
            aria-selected={id === chosen}
            aria-controls={`${base}-panel`}
            tabIndex={id === chosen ? 0 : -1}
            onClick={() => onChoose(id)}
          >
            {title}
          </button>
        ))}
      </div>
      <div id={`${base}-panel`} role="tabpanel" aria-labelledby={`${base}-${chosen}`} class="stack">
        {children}
      </div>
    </div>
  )
}

/** Chooses one of a few forms of the same thing. */
export function Choice<Name extends string>({
  label,
  names,
  chosen,
  onChoose,
}: {
  label: string
  names: readonly Name[]
  chosen: Name
  onChoose: (name: Name) => void
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === chosen}
          onClick={() => onChoose(name)}
        >
          {name}
        </button>
      ))}
    </div>
  )
}

/** A line that opens what is below it. What is closed is not drawn. */
export function Fold({
  title,
  children,
  open = false,
  card = false,
}: {
  title: ComponentChildren
  children: () => ComponentChildren
  open?: boolean
  card?: boolean
}) {
  const [isOpen, setOpen] = useState(open)
  return (
    <details
      class={card ? 'card' : ''}
      open={isOpen}
      onToggle={(e) => setOpen(e.currentTarget.open)}
    >
      <summary>
        {title}
        <Icon name="chevron" class="chevron" />
      </summary>
      {isOpen && children()}
    </details>
  )
}

/** A button that opens a menu, which closes by Escape, a choice, or a press elsewhere. */
export function Menu({ label, children }: { label: string; children: ComponentChildren }) {
  const ref = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const closeIfOutside = ({ target }: Event): void => {
      if (ref.current && target instanceof Node && !ref.current.contains(target))
        ref.current.open = false
    }
    const closeByKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || !ref.current?.open) return
      event.preventDefault()
      ref.current.open = false
      ref.current.querySelector('summary')?.focus()
    }
    document.addEventListener('pointerdown', closeIfOutside)
    document.addEventListener('keydown', closeByKey, { capture: true })
    return () => {
      document.removeEventListener('pointerdown', closeIfOutside)
      document.removeEventListener('keydown', closeByKey, { capture: true })
    }
  }, [])
  function chosen({ target }: Event): void {
    if (ref.current && (target as Element).closest('.btn')) ref.current.open = false
  }
  return (
    <details class="menu" ref={ref}>
      <summary class="btn secondary">
        {label}
        <Icon name="chevron" />
      </summary>
      <div class="stack tight" onClick={chosen}>
        {children}
      </div>
    </details>
  )
}

/** How much of a limit is used. */
export function Meter({
  label,
  used,
  limit,
  show,
}: {
  label: string
  used: number
  limit: number
  show: (count: number) => string
}) {
  return (
    <div class="meter">
      <div class="row between number small">
        <span class="quiet">{label}</span>
        <span>{`${show(used)} of ${show(limit)}`}</span>
      </div>
      <progress
        class={used / limit > 0.9 ? 'low' : ''}
        aria-label={label}
        max={limit}
        value={used}
      />
    </div>
  )
}

/** A text that changes with time. It stands still while a person selects it. */
export function Ticking({ text }: { text: (now: number) => string }) {
  const ref = useRef<HTMLSpanElement>(null)
  const shown = useRef('')
  const next = text(now.value)
  const selection = getSelection()
  const isHeld =
    ref.current !== null &&
    selection?.isCollapsed === false &&
    selection.containsNode(ref.current, true)
  if (!isHeld) shown.current = next
  return <span ref={ref}>{shown.current}</span>
}

export function Qr({ text, label }: { text: string; label: string }) {
  const rows = encodeQR(text, 'raw', { ecc: 'low', border: 1 })
  const path = rows
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
  return (
    <div class="qr">
      <svg
        viewBox={`0 0 ${rows.length} ${rows.length}`}
        role="img"
        aria-label={label}
        shape-rendering="crispEdges"
      >
        <path d={path} fill="currentColor" />
      </svg>
    </div>
  )
}

/** The heading of a step. It takes the focus when it appears, so that a screen reader announces it. */
export function StepHeading({
  children,
  level: Level = 'h1',
}: {
  children: ComponentChildren
  level?: 'h1' | 'h2'
}) {
  const ref = useRef<HTMLHeadingElement>(null)
  useEffect(() => ref.current?.focus(), [])
  return (
    <Level ref={ref} id="step" tabIndex={-1}>
      {children}
    </Level>
  )
}

export function Working({ children }: { children: ComponentChildren }) {
  return (
    <div class="card stack narrow">
      <p role="status">
        <State kind="waiting" busy>
          {children}
        </State>
      </p>
      <div class="skeleton" aria-hidden="true" />
    </div>
  )
}

/** Downloads a file that the page has made. */
export function download(name: string, bytes: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([bytes], { type }))
  const link = document.createElement('a')
  Object.assign(link, { href: url, download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** Asks before a tab is closed or left that would lose something. */
export function useGuard(isAtStake: () => boolean): void {
  useEffect(() => {
    const ask = (event: Event): void => {
      if (isAtStake() && !isHandingOver.peek()) event.preventDefault()
    }
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  })
}

const isHandingOver = signal(false)

/** Browsers ask the guards for a link to another program, such as `lightning:`, too, though the page stays. */
export function handOver(): void {
  isHandingOver.value = true
  setTimeout(() => {
    isHandingOver.value = false
  }, 1_000)
}

/** The tab's title, which says how far something is while a person looks at another tab. */
export function showTitle(text: string): void {
  document.title = `${text} · Mayfly`
}
