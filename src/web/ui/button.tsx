/** What is pressed: buttons, links that look like them, menus, choices and tabs. `base.css` has their looks. */
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { Icon, type IconName } from './icons.tsx'
import { useOwnId } from './own-id.ts'

export type ButtonProps = {
  /** Without any, it shows its icon alone. */
  children?: ComponentChildren
  onClick?: (() => unknown) | undefined
  /** Makes it a link. */
  href?: string
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
}

export function Button({ children, icon, label, href, ...rest }: ButtonProps) {
  const isBare = children === undefined
  const { weight = isBare ? 'quiet' : 'secondary', danger, size = '' } = rest
  const { disabled, pressed, submits, onClick } = rest
  const looks = {
    class: `btn ${weight} ${size} ${isBare ? 'icon-only' : ''} ${danger ? 'danger' : ''}`,
    title: isBare ? label : undefined,
  }
  const content = (
    <>
      {icon && <Icon name={icon} />}
      {children}
    </>
  )
  if (href !== undefined) {
    return (
      <a {...looks} href={href} onClick={onClick}>
        {content}
      </a>
    )
  }
  return (
    <button
      {...looks}
      type={submits ? 'submit' : 'button'}
      aria-label={label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      {content}
    </button>
  )
}

/** A button that opens a menu: the browser closes it by Escape and by a press elsewhere. */
export function Menu({ label, children }: { label: string; children: ComponentChildren }) {
  const id = useOwnId()
  const ref = useRef<HTMLDivElement>(null)
  function chosen({ target }: Event): void {
    if ((target as Element).closest('.btn')) ref.current?.hidePopover()
  }
  return (
    <>
      <button type="button" class="btn secondary" popovertarget={id}>
        {label}
        <Icon name="chevron" />
      </button>
      <div class="menu stack tight" id={id} popover="auto" ref={ref} onClick={chosen}>
        {children}
      </div>
    </>
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

/** Tabs and the panel of the chosen one. The arrows move between them (WAI-ARIA Authoring Practices). */
export function Tabs<Name extends string>({
  label,
  names,
  titles = {},
  chosen,
  onChoose,
  children,
}: {
  label: string
  names: readonly Name[]
  /** Longer titles than the names. The smallest phones leave out a `.remark`. */
  titles?: Partial<Record<Name, ComponentChildren>>
  chosen: Name
  onChoose: (name: Name) => void
  children: ComponentChildren
}) {
  const base = useOwnId()
  const idOf = (name: Name): string => `${base}-${names.indexOf(name)}`
  function moved(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const next = names[(names.indexOf(chosen) + step + names.length) % names.length]
    if (next === undefined) return
    onChoose(next)
    document.getElementById(idOf(next))?.focus()
  }
  return (
    <div class="stack">
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={moved}>
        {names.map((name) => (
          <button
            key={name}
            id={idOf(name)}
            type="button"
            role="tab"
            aria-selected={name === chosen}
            aria-controls={`${base}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {titles[name] ?? name}
          </button>
        ))}
      </div>
      <div id={`${base}-panel`} role="tabpanel" aria-labelledby={idOf(chosen)} class="stack">
        {children}
      </div>
    </div>
  )
}
