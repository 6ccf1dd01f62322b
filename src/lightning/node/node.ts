/** A backend that is a node of its own, and not the simulator. */
import type { Lightning } from '../lightning.ts'
import type { AccessProblem } from './access.ts'

export type LightningNode = Lightning & {
  /** What keeps Mayfly from working with this node, or null. */
  checkAccess(): Promise<AccessProblem | null>
  /** Ends every call and every watch. */
  close(): Promise<void>
}
