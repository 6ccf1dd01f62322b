/** The keys that this browser keeps, with what the service says of each. */
import { useEffect, useState } from 'preact/hooks'
import type { CatchStatus, PulseStatus, WhisperReceipt } from '../../client/index.ts'
import { plainly } from '../lib/foreign.ts'
import { plural, when } from '../lib/format.ts'
import { forget, type Kept, kept, noteEnd, noteFailure, openHere } from '../lib/keys.ts'
import { clock, service } from '../lib/service.ts'
import { planTitle, THINGS } from '../lib/terms.ts'
import { Button } from '../ui/button.tsx'
import { toast } from '../ui/overlay.tsx'
import { State, type StateKind } from '../ui/show.tsx'

type Product = Kept['capability']['product']
type Told = { kind: StateKind; text: string }

const NO_ANSWER: Told = { kind: 'lost', text: 'The service does not answer' }
/** A page asks about so many at once: more would be too many requests. */
const MAX_ASKED = 12

export function Things({
  product,
  onOpen = openKept,
}: {
  /** Only these; all without it. */
  product?: Product
  onOpen?: (thing: Kept) => void
}) {
  const [states, setStates] = useState<Record<string, Told>>({})
  const things = kept.value.filter(
    ({ capability }) => (product ?? capability.product) === capability.product,
  )
  useEffect(() => {
    for (const thing of things.slice(0, MAX_ASKED)) {
      const { publicId } = thing.capability
      stateOf(thing)
        .catch((error: unknown) => {
          noteFailure(publicId, error)
          return NO_ANSWER
        })
        .then((told) => setStates((others) => ({ ...others, [publicId]: told })))
    }
  }, [])
  return (
    <ul class="things">
      {things.map((thing) => (
        <Thing
          key={thing.capability.publicId}
          thing={thing}
          told={states[thing.capability.publicId]}
          onOpen={onOpen}
        />
      ))}
    </ul>
  )
}

function Thing({
  thing,
  told,
  onOpen,
}: {
  thing: Kept
  told: Told | undefined
  onOpen: (thing: Kept) => void
}) {
  const { name, planId, capability, isGone } = thing
  const shown = plainly(name)
  const about = [
    THINGS[capability.product].title,
    planTitle(planId),
    isGone ? '' : `until ${when(capability.expiresAt)}`,
  ]
  function remove(): void {
    forget(capability.publicId)
    toast(`${shown} was removed from this list.`)
  }
  return (
    <li>
      <div class="name">
        <strong dir="auto">{shown}</strong>
        <div class="small quiet">{about.filter((part) => part !== '').join(' · ')}</div>
      </div>
      {isGone ? (
        <>
          <State kind="over">
            {hasEnded(capability) ? ENDS.expired : 'The key opens nothing now'}
          </State>
          <Button label={`Remove ${shown}`} onClick={remove}>
            Remove
          </Button>
        </>
      ) : (
        <>
          {told && <State kind={told.kind}>{told.text}</State>}
          <Button label={`Open ${shown}`} onClick={() => onOpen(thing)}>
            Open
          </Button>
        </>
      )}
    </li>
  )
}

/** Opens a kept key in this tab, and goes to its page. Nothing of it is in the address. */
function openKept({ name: _, isGone: _gone, ...held }: Kept): void {
  openHere({ ...held, isSaved: true })
  location.assign(THINGS[held.capability.product].page)
}

async function stateOf({ capability }: Kept): Promise<Told> {
  const { publicId, product } = capability
  const isSecret = capability.product === 'whisper'
  const path = `/api/${product}/${encodeURIComponent(publicId)}${isSecret ? '/receipt' : ''}`
  const token = isSecret ? (capability.receiptToken ?? '') : capability.ownerToken
  const status = await service.get<WhisperReceipt | PulseStatus | CatchStatus>({ path, token })
  noteEnd(publicId, status.expiresAt)
  if ('readsSpent' in status) return stateOfSecret(status)
  if ('heartbeatLimit' in status) return STATES[status.state]
  if (status.status === 'exhausted') return { kind: 'over', text: 'All requests used' }
  return status.status === 'active'
    ? { kind: 'good', text: plural(status.acceptedRequestCount, 'request') }
    : { kind: 'over', text: ENDS[status.status] }
}

/** By the service's clock, as far as this browser knows its end. */
export const hasEnded = ({ expiresAt }: Kept['capability']): boolean =>
  Date.parse(expiresAt) <= clock.now()

const ENDS = {
  suspended: 'Suspended by the operator',
  expired: 'Expired',
  destroyed: 'Destroyed',
  manually_destroyed: 'Destroyed',
}

/** How a secret stands, in the words of each page. */
export function stateOfSecret({ state, readsSpent }: WhisperReceipt): Told {
  if (state === 'exhausted') return { kind: 'over', text: 'All reads used' }
  if (state !== 'active') return { kind: 'over', text: ENDS[state] }
  return readsSpent === 0
    ? { kind: 'waiting', text: 'Not read yet' }
    : { kind: 'good', text: 'It was read' }
}

/** The states of a monitor, and what each means to anybody: the cause of lateness is its owner's. */
export const STATES: Record<PulseStatus['state'], Told & { means: string }> = {
  waiting: { kind: 'waiting', text: 'Waiting', means: 'No pings yet.' },
  operational: { kind: 'good', text: 'Operational', means: 'Pings are arriving on time.' },
  late: { kind: 'bad', text: 'Late', means: 'No ping came in time, or the last run failed.' },
  exhausted: {
    kind: 'over',
    text: 'Exhausted',
    means: 'All pings are used. New ones are refused.',
  },
  expired: { kind: 'over', text: 'Expired', means: 'This monitor has ended.' },
}
