/** What was bought, and one way on: save its key and open it. */
import { useSignal } from '@preact/signals'
import type { CatchCapability, PulseCapability } from '../../client/index.ts'
import { when } from '../lib/format.ts'
import { type Held, keep, keyFileName, keyText, openHere, whatIsOpen } from '../lib/keys.ts'
import { BLOCKED, isStorageBlocked } from '../lib/storage.ts'
import { THINGS, termsLine } from '../lib/terms.ts'
import { end, type Unfinished } from '../lib/unfinished.ts'
import { confirmed } from '../ui/page.tsx'
import { Button, CopyButton, download, Fold, Notice, StepHeading } from '../ui/ui.tsx'
import { Paid } from './checkout.tsx'

export function Bought({
  capability,
  purchase,
}: {
  capability: CatchCapability | PulseCapability
  purchase: Unfinished
}) {
  const { product, publicId, expiresAt } = capability
  const { noun, an } = THINGS[product]
  const held: Held = { capability, planId: purchase.planId }
  const saved = useSignal<string | null>(null)

  function onSaved(how: string): void {
    saved.value = how
    end(purchase)
  }

  async function open(): Promise<void> {
    const there = whatIsOpen(product)
    const isLost = there?.isSaved === false && there.capability.publicId !== publicId
    const question = {
      body: `This tab has ${an} open whose key is not saved. Opening this one closes it for good.`,
      action: 'Lose it',
    }
    if (isLost && !(await confirmed(`Close ${an} that is not saved?`, question))) return
    openHere({ ...held, isSaved: saved.value !== null })
    onSaved('Open in this tab.')
    location.assign(THINGS[product].page)
  }

  function saveAndOpen(): Promise<void> | void {
    if (keep(held)) {
      onSaved('Saved in this browser.')
      return open()
    }
    saved.value = null
  }

  function downloadKey(): void {
    download(keyFileName(held), keyText(held), 'application/json')
    onSaved('Downloaded.')
  }

  const isBlocked = isStorageBlocked()
  return (
    <section class="card stack narrow" aria-label="Checkout">
      <div class="stack tight">
        <Paid />
        <StepHeading>Your {noun} is ready</StepHeading>
        <p class="quiet">
          {termsLine(purchase)}, until <time dateTime={expiresAt}>{when(expiresAt)}</time>
        </p>
      </div>
      {isBlocked ? (
        <>
          <Notice kind="warn">{BLOCKED}</Notice>
          <Button weight="primary" size="large wide" icon="download" onClick={downloadKey}>
            Download the key
          </Button>
          <p class="small quiet">
            Then open it on the page <a href={THINGS[product].page}>{THINGS[product].title}</a>.
          </p>
        </>
      ) : (
        <>
          <Button weight="primary" size="large wide" onClick={saveAndOpen}>
            Save and open
          </Button>
          <p class="small quiet">
            Saves its key in this browser. Anyone who uses this browser can open it.
          </p>
        </>
      )}
      {saved.value !== null && <Notice kind="good">{saved.value}</Notice>}
      <Fold title="Other ways">
        {() => (
          <div class="stack">
            <p class="small quiet">
              The key is the only way in. Whoever has it can use this {noun}, and we cannot recover
              it.
            </p>
            <div class="row">
              <Button icon="download" onClick={downloadKey}>
                Download the key
              </Button>
              <CopyButton text={() => keyText(held)}>Copy the key</CopyButton>
              {!isBlocked && <Button onClick={open}>Open without saving</Button>}
            </div>
            <pre class="content token" tabIndex={0} role="group" aria-label="The key">
              <code>{keyText(held).trim()}</code>
            </pre>
          </div>
        )}
      </Fold>
    </section>
  )
}
