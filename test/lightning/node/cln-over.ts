/** The backend of Core Lightning over its stand-in. */

import { type ClnOptions, createCln } from '../../../src/lightning/cln/cln.ts'
import type { LightningNode } from '../../../src/lightning/node/node.ts'
import type { After } from '../../support/folder.ts'
import { CERTIFICATE } from '../../support/stand-ins/certificate.ts'
import type { ClnStandIn } from '../../support/stand-ins/cln.ts'

/** Both are closed when the test ends. */
export function clnOver(
  t: After,
  standIn: ClnStandIn,
  options: Pick<ClnOptions, 'clock'> & Partial<ClnOptions>,
): LightningNode {
  let payIndex = 0
  const lightning = createCln({
    baseUrl: standIn.baseUrl,
    rune: standIn.rune(),
    certificate: CERTIFICATE,
    private: false,
    cursor: {
      read: async () => payIndex,
      write: async (index) => {
        payIndex = index
      },
    },
    ...options,
  })
  t.after(async () => {
    await lightning.close()
    await standIn.close()
  })
  return lightning
}
