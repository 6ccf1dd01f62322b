/** `mayfly takedown …`: the operator's answer to abuse, on the store, whether the service runs or not. */
import { rfc3339 } from '../../lib/clock.ts'
import { isId } from '../../lib/ids.ts'
import type { Suspension, Target } from '../../service/takedowns.ts'
import { group } from '../declare.ts'
import { CliError, misuse } from '../exit.ts'
import { checkReason, operator, withStore } from './command.ts'

const CAPABILITY = { '<publicId>': 'catch_…, whisper_… or pulse_…' }

const addSuspend = operator({
  command: 'suspend',
  says: 'suspend an inbox, a whisper or a monitor; nothing is deleted',
  takes: {
    ...CAPABILITY,
    '--reason <text>': 'why, for this list and the log of the service; no buyer sees it',
  },
  examples: ['mayfly takedown suspend catch_… --reason "phishing, case 17"'],
  async run({ publicId, reason = '' }) {
    checkReason(reason)
    const target = await targetOf(publicId)
    const { suspend } = await import('../../service/takedowns.ts')
    const isDone = await withStore(({ db, clock }) =>
      suspend(db, target, { reason, now: clock.now() }),
    )
    if (!isDone) {
      throw new CliError(`${publicId} is unknown, over, or was suspended before.`)
    }
    const json = { publicId, isSuspended: true, reason }
    return { json, text: `${publicId} is suspended.\n` }
  },
})

const addResume = operator({
  command: 'resume',
  says: 'let a suspended one be used again',
  takes: CAPABILITY,
  examples: ['mayfly takedown resume catch_…'],
  async run({ publicId }) {
    const target = await targetOf(publicId)
    const { resume } = await import('../../service/takedowns.ts')
    const done = await withStore(({ db, clock }) => resume(db, target, clock.now()))
    if (done === 'unknown') throw new CliError(`${publicId} is not suspended.`)
    const text =
      done === 'over'
        ? `${publicId} has ended since. It is off the list.\n`
        : `${publicId} is resumed.\n`
    return { json: { publicId, isSuspended: false, hasEnded: done === 'over' }, text }
  },
})

const addList = operator({
  command: 'list',
  says: 'list what is suspended, newest first',
  takes: { '--all': 'also what was resumed' },
  examples: ['mayfly takedown list', 'mayfly takedown list --all'],
  async run({ all: isAll = false }) {
    const { listSuspensions } = await import('../../service/takedowns.ts')
    const suspensions = await withStore(({ db }) => listSuspensions(db, { isAll }))
    return {
      json: { takedowns: suspensions.map(shown) },
      text: suspensions.length === 0 ? 'Nothing is suspended.\n' : suspensions.map(line).join(''),
    }
  },
})

export const addTakedown = group(
  { command: 'takedown', says: 'suspend what is abused, by its public id, and resume it' },
  [addSuspend, addResume, addList],
)

/** @throws CliError if no product has such an id. */
async function targetOf(publicId: string): Promise<Target> {
  const { SOLD_FACTS } = await import('../../service/products.ts')
  const facts = SOLD_FACTS.find(({ takedown }) => isId(takedown.kind, publicId))
  if (facts) return { publicId, product: facts.name, takedown: facts.takedown }
  const hint = isId('gate_project', publicId)
    ? `Suspend a project with: mayfly gate project suspend ${publicId}`
    : `${publicId} is not the public id of a capability (catch_…, whisper_… or pulse_…).`
  throw misuse(hint)
}

const shown = ({ suspendedAt, resumedAt, ...rest }: Suspension) => ({
  ...rest,
  suspendedAt: rfc3339(suspendedAt),
  resumedAt: resumedAt === null ? null : rfc3339(resumedAt),
})

function line({ publicId, reason, suspendedAt, resumedAt }: Suspension): string {
  const state = resumedAt === null ? 'suspended' : `resumed ${rfc3339(resumedAt)}`
  return `${rfc3339(suspendedAt)}  ${publicId}  ${state}${reason === '' ? '' : `  ${reason}`}\n`
}
