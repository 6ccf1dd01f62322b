/** `mayfly catch …`: the owner's commands of an inbox. */
import { group } from '../declare.ts'
import { addCatchDelete, addCatchEvents, addCatchExport, addCatchShow } from './events.ts'
import { addCatchListen } from './listen.ts'
import { addCatchReplay } from './replay.ts'
import { addCatchRespond } from './respond.ts'
import { addCatchTrigger } from './trigger.ts'
import { addCatchVerify } from './verify.ts'

export const addCatch = group(
  { command: 'catch', says: 'follow, read, forward and delete the webhooks of an inbox' },
  [
    addCatchListen,
    addCatchEvents,
    addCatchShow,
    addCatchRespond,
    addCatchTrigger,
    addCatchReplay,
    addCatchVerify,
    addCatchExport,
    addCatchDelete,
  ],
)
