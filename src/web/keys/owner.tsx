/** What an owner does with an open inbox or monitor, whatever it is: extend it and destroy it. */
import type { ComponentChildren } from 'preact'
import type { AnyCapability } from '../../client/index.ts'
import { type Extending, showExtension } from '../buying/extend.tsx'
import { forget } from '../lib/keys.ts'
import { THINGS } from '../lib/terms.ts'
import { Button, Menu } from '../ui/button.tsx'
import { attempt, confirmed, toast } from '../ui/overlay.tsx'
import type { Opened } from './opener.tsx'

export type Owned = Pick<Extending, 'status' | 'onExtended'> & {
  opened: Opened
  /** The service extends nothing else. */
  isActive: boolean
  capability: Extract<AnyCapability, { ownerToken: string }>
  client: { destroy(): Promise<void> }
  /** What is lost with it, as a sentence. */
  loss: string
}

export const extend = ({ opened: { onReplaced }, capability, status, onExtended }: Owned): void =>
  showExtension({ capability, status, onExtended, onReplaced })

export function OwnerMenu({ owned, children }: { owned: Owned; children?: ComponentChildren }) {
  const { opened, isActive, capability, client, loss } = owned
  const { noun } = THINGS[capability.product]
  async function destroy(): Promise<void> {
    const question = { body: `${loss} No refund.`, action: 'Destroy it' }
    if (!(await confirmed(`Destroy this ${noun}?`, question))) return
    await attempt(async () => {
      await client.destroy()
      forget(capability.publicId)
      toast(`The ${noun} was destroyed.`)
      opened.onClose()
    })
  }
  return (
    <Menu label="More">
      {children}
      {isActive && (
        <Button icon="plus" onClick={() => extend(owned)}>
          Extend the {noun}
        </Button>
      )}
      <Button danger icon="trash" onClick={destroy}>
        Destroy the {noun}
      </Button>
    </Menu>
  )
}
