/** What says something: notices, states, meters, times, and steps. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { encodeQR } from 'qr'
import type { Connection } from '../lib/connection.ts'
import { pauseOf, reasonOf } from '../lib/format.ts'
import { isOnline, now, type Reach, secondsUntil } from '../lib/service.ts'
import { Button, type ButtonProps } from './button.tsx'
import { Icon } from './icons.tsx'

export function Notice({
  kind,
  children,
  action,
}: {
  kind?: 'warn' | 'bad' | 'good' | undefined
  children: ComponentChildren
  action?: ComponentChildren
}) {
  return (
    <div class={`notice ${kind ?? ''}`}>
      <p role={kind === 'bad' ? 'alert' : undefined}>{children}</p>
      {action}
    </div>
  )
}

/** Why something failed, and the way to try again: after the pause, if the service asks for one. */
export function Failure({
  error,
  says = reasonOf(error),
  weight,
  onAgain,
}: {
  error: unknown
  says?: string
  weight?: ButtonProps['weight']
  onAgain: () => unknown
}) {
  const againAt = useMemo(() => now.peek() + pauseOf(error) * 1_000, [error])
  const left = secondsUntil(againAt)
  return (
    <Notice
      kind="bad"
      action={
        <Button weight={weight} disabled={left > 0} onClick={onAgain}>
          {left > 0 ? `Try again in ${left} s` : 'Try again'}
        </Button>
      }
    >
      {says}
    </Notice>
  )
}

/** What is made of what is loaded once; or why it is not there, with another try. */
export function Loaded<Value>({
  load,
  waiting,
  above,
  weight,
  children,
}: {
  load: () => Promise<Value>
  waiting: ComponentChildren
  /** Shown above a failure. */
  above?: ComponentChildren
  weight?: ButtonProps['weight']
  children: (value: Value) => ComponentChildren
}) {
  const [loaded, setLoaded] = useState<{ value: Value } | { error: unknown } | null>(null)
  async function start(): Promise<void> {
    setLoaded(null)
    setLoaded(
      await load().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      ),
    )
  }
  useEffect(() => void start(), [])
  if (loaded === null) return <>{waiting}</>
  if ('value' in loaded) return <>{children(loaded.value)}</>
  return (
    <div class="stack narrow">
      {above}
      <Failure error={loaded.error} weight={weight} onAgain={start} />
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

/** Why nothing comes from the service. Its seconds are for eyes alone: a screen reader would read each. */
export function Trouble({ reach }: { reach: Reach }) {
  const left = secondsUntil(reach.againAt)
  return (
    <span>
      {causeOf(reach)}. Trying again
      {left > 0 ? <span aria-hidden="true">{` in ${left} s.`}</span> : '…'}
    </span>
  )
}

function causeOf({ status }: Reach): string {
  if (status === 429) return 'Too many requests'
  if (status > 0) return 'The service is busy or away'
  return isOnline.value ? 'The service does not answer' : 'You are offline'
}

const CONNECTIONS = {
  connecting: ['waiting', '…'],
  open: ['good', 'Live'],
  lost: ['lost', 'Connection lost. Trying again…'],
  ended: ['over', 'Not live'],
} as const

/** Whether what is open shows news at once. */
export function LiveState({ connection: { state } }: { connection: Connection }) {
  const isOffline = !isOnline.value && state.value !== 'ended'
  const [kind, words] = isOffline
    ? (['lost', 'You are offline'] as const)
    : CONNECTIONS[state.value]
  return (
    <State kind={kind} live>
      {kind === 'waiting' && <span class="visually-hidden">Connecting</span>}
      {words}
    </State>
  )
}

/** A line that opens what is below it. What is closed is not drawn. */
export function Fold({
  title,
  children,
  open = false,
}: {
  title: ComponentChildren
  children: () => ComponentChildren
  open?: boolean
}) {
  const [isOpen, setOpen] = useState(open)
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {title}
        <Icon name="chevron" class="chevron" />
      </summary>
      {isOpen && children()}
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
  const isLow = used / limit > 0.9
  return (
    <div class="meter">
      <div class="row between number small">
        <span class="quiet">{label}</span>
        <span>{`${show(used)} of ${show(limit)}`}</span>
      </div>
      <progress class={isLow ? 'low' : ''} aria-label={label} max={limit} value={used} />
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
  const viewBox = `0 0 ${rows.length} ${rows.length}`
  return (
    <div class="qr">
      <svg viewBox={viewBox} role="img" aria-label={label} shape-rendering="crispEdges">
        <path d={path} fill="currentColor" />
      </svg>
    </div>
  )
}

/** Text as it is written. With a tabindex, the keyboard can scroll it too. */
export function Pre({
  label,
  kind,
  dir,
  children,
}: {
  label: string
  /** Its classes. */
  kind?: string
  dir?: 'auto'
  children: ComponentChildren
}) {
  return (
    <pre class={kind} dir={dir} tabIndex={0} role="group" aria-label={label}>
      <code>{children}</code>
    </pre>
  )
}

/** The heading of a page, and what the page is for. */
export function Head({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="stack tight">
      <h1>{title}</h1>
      <p class="lead">{children}</p>
    </div>
  )
}

/** The heading of a step. It takes the focus when it appears, so that a screen reader announces it. */
export function StepHeading({
  children,
  level: Level = 'h1',
}: {
  children: ComponentChildren
  level?: 'h1' | 'h2' | 'h3'
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

/** Asks before a tab is closed or left that would lose something. */
export function useGuard(isAtStake: () => boolean): void {
  useEffect(() => {
    const ask = (event: Event): void => {
      if (isAtStake()) event.preventDefault()
    }
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  })
}

/** The tab's title, which says how far something is while a person looks at another tab. */
export function showTitle(text: string): void {
  document.title = `${text} · Mayfly`
}
