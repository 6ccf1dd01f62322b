/** What a page may show above itself: one toast, dialogs, and what screen readers are told. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { sentence } from '../lib/format.ts'

/** Long enough to read a short sentence twice, and to reach its button. */
const TOAST_MS = 5_000

export type Toast = { text: string; action?: { label: string; run: () => unknown } | undefined }
export type Dialog = {
  id: number
  title: string
  body: (close: () => void) => ComponentChildren
  onClosed(): void
}

export const shownToast = signal<Toast | null>(null)
export const dialogs = signal<readonly Dialog[]>([])
export const announced = signal({ text: '', count: 0 })
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

/** Opens a modal dialog, until the person or `close` closes it. */
export function openDialog(
  title: string,
  body: Dialog['body'],
  onClosed: () => void = () => {},
): void {
  opened++
  dialogs.value = [...dialogs.value, { id: opened, title, body, onClosed }]
}

/** Runs work, and shows the reason if it fails. */
export async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    toast(sentence(error))
  }
}
