/** Forms: fields with their labels, and one form that says what is wrong with it. */
import { type ComponentChildren, cloneElement, type InputHTMLAttributes, type VNode } from 'preact'
import { useState } from 'preact/hooks'
import { pauseOf, reasonOf } from '../lib/format.ts'
import { now, secondsUntil } from '../lib/service.ts'
import { Button, type ButtonProps } from './button.tsx'
import { useOwnId } from './own-id.ts'
import { Notice } from './show.tsx'

/** A label above a control, with a hint below it. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string
  hint?: ComponentChildren
  children: VNode<{ id?: string; 'aria-describedby'?: string }>
}) {
  const id = useOwnId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {cloneElement(children, { id, ...(hint && { 'aria-describedby': `${id}-hint` }) })}
      {hint && (
        <div id={`${id}-hint`} class="hint">
          {hint}
        </div>
      )}
    </div>
  )
}

type InputProps = Omit<InputHTMLAttributes, 'label' | 'onInput'> & {
  label: string
  hint?: ComponentChildren
  /** A text of several lines. */
  rows?: number
  onText?: (text: string) => unknown
}

/** A text field. Browsers neither complete nor correct what is a token, a name or a pattern. */
export function Input({ label, hint, rows, onText, ...rest }: InputProps) {
  const onInput = ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
    onText?.(currentTarget.value)
  const plain = { autocomplete: 'off', autocapitalize: 'off', spellcheck: false } as const
  const props = { ...plain, ...rest, onInput } as object
  return (
    <Field label={label} hint={hint}>
      {rows === undefined ? <input type="text" {...props} /> : <textarea rows={rows} {...props} />}
    </Field>
  )
}

/** One of a list. Its options are names, or values with their titles. */
export function Select<Value extends string>({
  label,
  options,
  chosen,
  name,
  onChoose,
}: {
  label: string
  options: readonly Value[] | Readonly<Record<Value, string>>
  chosen?: Value | undefined
  name?: string
  onChoose?: (value: Value) => unknown
}) {
  const titles = Array.isArray(options)
    ? options.map((each) => [each, each])
    : Object.entries(options)
  return (
    <Field label={label}>
      <select
        name={name}
        onChange={({ currentTarget }) => onChoose?.(currentTarget.value as Value)}
      >
        {titles.map(([value, title]) => (
          <option key={value} value={value} selected={value === chosen}>
            {title}
          </option>
        ))}
      </select>
    </Field>
  )
}

/** What the fields of a form have, by their names. */
export type Fields = (name: string) => string

/** A form that is at work until it is done, and says why it is not, and from when a busy service takes it. */
export function Form({
  label,
  heading,
  action,
  onSubmit,
  explain = reasonOf,
  onCancel,
  more,
  note,
  weight = 'primary',
  card = false,
  children,
}: {
  label: string
  heading?: ComponentChildren
  /** The button that sends it. */
  action: string
  /** Gives what is wrong, in words, or throws what `explain` says. */
  onSubmit: (field: Fields) => unknown
  explain?: (error: unknown) => string
  onCancel?: () => unknown
  /** Besides its buttons. */
  more?: ComponentChildren
  /** Below its buttons. */
  note?: string
  weight?: ButtonProps['weight']
  card?: boolean
  children: ComponentChildren
}) {
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [againAt, setAgainAt] = useState(0)
  const left = secondsUntil(againAt)
  const waits = left > 0 ? `${action} in ${left} s` : isBusy ? `${action}…` : null
  async function submit(event: Event & { currentTarget: HTMLFormElement }): Promise<void> {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    setBusy(true)
    try {
      const wrong = await onSubmit((name) => String(form.get(name) ?? ''))
      setProblem(typeof wrong === 'string' ? wrong : null)
    } catch (error) {
      setProblem(explain(error))
      setAgainAt(now.peek() + pauseOf(error) * 1_000)
    }
    setBusy(false)
  }
  return (
    // By this method a browser sends nothing itself, so that no field can get into an address.
    <form
      method="dialog"
      class={`${card ? 'card' : ''} stack`}
      aria-label={label}
      onSubmit={submit}
      // Whoever mends it needs to be told no longer.
      onInput={() => setProblem(null)}
    >
      {heading}
      {children}
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      <div class="row">
        <Button submits weight={weight} disabled={waits !== null}>
          {waits ?? action}
        </Button>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        {more}
      </div>
      {note !== undefined && <p class="small quiet">{note}</p>}
    </form>
  )
}
