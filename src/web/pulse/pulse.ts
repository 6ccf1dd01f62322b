/** The page of PULSE: opens a monitor. */

import { startOpener } from '../buying/opener.ts'
import { byId } from '../dom.ts'
import { openMonitor } from './monitor.ts'

const place = byId('monitor')

await startOpener({
  place,
  product: 'pulse',
  what: 'a monitor',
  open: (capability, opened) => openMonitor(place, capability, opened),
})
