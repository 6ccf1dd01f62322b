/** What an owner does with an open inbox or monitor, whatever it is: extend it and destroy it. */
import type { ComponentChildren } from 'preact'
import { type Extending, showExtension } from '../buying/extend.tsx'
import { forget } from '../lib/keys.ts'
import { THINGS } from '../lib/terms.ts'
import { Button, Menu } from '../ui/button.tsx'
import { onConsent, toast } from '../ui/overlay.tsx'
import { close } from './opener.tsx'

export type Owned = Extending & {
  /** The service extends nothing else. */
  isActive: boolean
  client: { destroy(): Promise<void> }
  /** What is lost with it, as a sentence. */
  loss: string
}

export function OwnerMenu({ owned, children }: { owned: Owned; children?: ComponentChildren }) {
  const { isActive, capability, client, loss } = owned
  const { noun } = THINGS[capability.product]
  const question = { body: `${loss} No refund.`, action: 'Destroy it' }
  const askToDestroy = (): Promise<void> =>
    onConsent(`Destroy this ${noun}?`, question, async () => {
      await client.destroy()
      forget(capability.publicId)
      toast(`The ${noun} was destroyed.`)
      close()
    })
  return (
    <Menu label="More">
      {children}
      {isActive && (
        <Button icon="plus" onClick={() => showExtension(owned)}>
          Extend the {noun}
        </Button>
      )}
      <Button danger icon="trash" onClick={askToDestroy}>
        Destroy the {noun}
      </Button>
    </Menu>
  )
}
