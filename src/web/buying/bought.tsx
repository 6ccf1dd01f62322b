/** What was bought, and one way on: save its key and open it. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { CatchCapability, PulseCapability } from '../../client/index.ts'
import { when } from '../lib/format.ts'
import { downloadKey, keep, keyText, openHere, whatIsOpen } from '../lib/keys.ts'
import { BLOCKED, isStorageBlocked } from '../lib/storage.ts'
import { THINGS, termsLine } from '../lib/terms.ts'
import { type Begun, end } from '../lib/unfinished.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { confirmed, toast } from '../ui/overlay.tsx'
import { Fold, Notice, Pre, State, StepHeading } from '../ui/show.tsx'

/** The head of what was paid for. */
export function Ready({ noun, children }: { noun: string; children?: ComponentChildren }) {
  return (
    <div class="stack tight">
      <State kind="good">Paid</State>
      <StepHeading>Your {noun} is ready</StepHeading>
      <p class="quiet">{children}</p>
    </div>
  )
}

export function Bought({
  capability,
  purchase,
}: {
  capability: CatchCapability | PulseCapability
  /** Unknown where it was recovered in another browser. */
  purchase: Begun | undefined
}) {
  const { product, publicId, expiresAt } = capability
  const { noun, an, title, page } = THINGS[product]
  const held = { capability, planId: purchase?.planId }
  const [saved, setSaved] = useState<string | null>(null)

  function onSaved(how: string): void {
    setSaved(how)
    if (purchase) end(purchase)
  }

  async function open(isSaved = saved !== null): Promise<void> {
    const there = whatIsOpen(product)
    const isLost = there?.isSaved === false && there.capability.publicId !== publicId
    const question = {
      body: `The key of the open ${noun} is not saved. Opening this one loses it for good.`,
      action: 'Lose it',
    }
    if (isLost && !(await confirmed(`Close ${an} that is not saved?`, question))) return
    openHere({ ...held, isSaved })
    onSaved('Open in this tab.')
    location.assign(page)
  }

  function saveAndOpen(): Promise<void> | void {
    if (!keep(held)) return toast(BLOCKED)
    onSaved('Saved in this browser.')
    return open(true)
  }

  function save(): void {
    downloadKey(held)
    onSaved('Downloaded.')
  }

  const isBlocked = isStorageBlocked()
  return (
    <section class="card stack narrow" aria-label="Checkout">
      <Ready noun={noun}>
        {purchase ? termsLine(purchase) : title}, until{' '}
        <time dateTime={expiresAt}>{when(expiresAt)}</time>
      </Ready>
      {isBlocked ? (
        <>
          <Notice kind="warn">{BLOCKED}</Notice>
          <Button weight="primary" size="large wide" icon="download" onClick={save}>
            Download the key
          </Button>
          <p class="small quiet">
            Then <a href={page}>open the {noun}</a> with the downloaded file.
          </p>
        </>
      ) : (
        <>
          <Button weight="primary" size="large wide" onClick={saveAndOpen}>
            Save and open
          </Button>
          <p class="small quiet">
            This saves the key in this browser. Anyone who uses this browser can open your {noun}.
          </p>
        </>
      )}
      {saved !== null && <Notice kind="good">{saved}</Notice>}
      <Fold title="Other ways">
        {() => (
          <div class="stack">
            <p class="small quiet">
              Only the key opens this {noun}. Anyone with the key can use it, and nobody can recover
              it.
            </p>
            <div class="row">
              <Button icon="download" onClick={save}>
                Download the key
              </Button>
              <CopyButton text={() => keyText(held)}>Copy the key</CopyButton>
              {!isBlocked && <Button onClick={() => open()}>Open without saving</Button>}
            </div>
            <Pre kind="content token" label="The key">
              {keyText(held).trim()}
            </Pre>
          </div>
        )}
      </Fold>
    </section>
  )
}
