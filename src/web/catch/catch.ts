/** The page of CATCH: opens an inbox. */

import { startOpener } from '../buying/opener.ts'
import { byId } from '../dom.ts'
import { openInbox } from './inbox.ts'

const place = byId('inbox')

await startOpener({
  place,
  product: 'catch',
  what: 'an inbox',
  open: (capability, opened) => openInbox(place, capability, opened),
})
