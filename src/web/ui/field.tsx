/** Forms: fields with their labels, and one form that says what is wrong with it. */
import { type ComponentChildren, cloneElement, type InputHTMLAttributes, type VNode } from 'preact'
import { useState } from 'preact/hooks'
import { sentence } from '../lib/format.ts'
import { Button } from './button.tsx'
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
  'data-at'?: string
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

/** What the fields of a form have, trimmed, by their names. */
export type Fields = (name: string) => string

/** Calls back with the fields of a form that the browser has found complete. */
export const submitted =
  (work: (field: Fields) => unknown) =>
  (event: Event & { currentTarget: HTMLFormElement }): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    work((name) => String(form.get(name) ?? '').trim())
  }

/** A form that is at work until it is done, and says why it is not. */
export function Form({
  label,
  action,
  onSubmit,
  explain = sentence,
  onCancel,
  more,
  card = false,
  children,
}: {
  label: string
  action: string
  onSubmit: (field: Fields) => unknown
  /** What is wrong, in words. */
  explain?: (error: unknown) => string
  onCancel?: () => unknown
  /** Besides its buttons. */
  more?: ComponentChildren
  card?: boolean
  children: ComponentChildren
}) {
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  async function submit(field: Fields): Promise<void> {
    setBusy(true)
    try {
      await onSubmit(field)
      setProblem(null)
    } catch (error) {
      setProblem(explain(error))
    }
    setBusy(false)
  }
  return (
    <form class={`${card ? 'card' : ''} stack`} aria-label={label} onSubmit={submitted(submit)}>
      {children}
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      <div class="row">
        <Button submits weight="primary" disabled={isBusy}>
          {action}
        </Button>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        {more}
      </div>
    </form>
  )
}
