/** `mayfly order …`: what an operator does to one order that went wrong, beside the service. */
import type { Config } from '../../config.ts'
import type { Db } from '../../db/db.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { handOutOrder } from '../../payment/handing-out.ts'
import {
  closeOrder,
  isOrderName,
  noteRefund,
  type OrderFacts,
  orderFacts,
  orderIdOf,
  type Repair,
  repairOrder,
} from '../../payment/repair.ts'
import { secretsGiven } from '../../secret-file.ts'
import { createSecrets } from '../../secrets/secrets.ts'
import { operateOnStore, type Said } from './command.ts'
import { provisionings, withNode } from './order-deps.ts'
import { orderRestore, RESTORE_USAGE } from './order-restore.ts'

const USAGE = `Usage: mayfly order <command>

  order show <order>       what is known of an order, without its secrets
  order close <order>      end an open order whose invoice the node has lost
  order repair <order>     provision an order that was paid and could not be
  order repair <order> --deliver
                           print the capability of a paid order that nobody has got, once;
                           for a buyer who cannot prove the payment to the service
  order refunded <order>   note that you have paid back such an order instead
${RESTORE_USAGE}
An order is named by its payment hash, as in the log, or by its id.
`

/** An order with the name that the operator gave, which is what is said of it. */
type Named = { orderId: string; name: string }
type Act = (config: Config, db: Db, order: Named) => Promise<Said>

const ACTS: Record<string, Act> = { show, close, repair, refunded, 'repair --deliver': deliver }

export async function orderCommand(args: string[]): Promise<number> {
  if (args[0] === 'restore') {
    const code = await orderRestore(args.slice(1))
    if (code !== null) return code
    process.stderr.write(USAGE)
    return 2
  }
  const isDelivery = args.includes('--deliver')
  const [verb = '', name = '', ...rest] = args.filter((arg) => arg !== '--deliver')
  const act = ACTS[isDelivery ? `${verb} --deliver` : verb]
  if (!act || !isOrderName(name) || rest.length > 0) {
    if (act && name !== '' && !isOrderName(name)) {
      process.stderr.write(`${name} is neither a payment hash nor the id of an order.\n\n`)
    }
    process.stderr.write(USAGE)
    return 2
  }
  return operateOnStore(async (config, db) => {
    const orderId = await orderIdOf(db, name)
    return orderId === null ? notFound(name) : act(config, db, { orderId, name })
  })
}

async function show(_config: Config, db: Db, { orderId, name }: Named): Promise<Said> {
  const facts = await orderFacts(db, orderId)
  return facts ? { isDone: true, text: shown(facts) } : notFound(name)
}

async function close(config: Config, db: Db, { orderId, name }: Named): Promise<Said> {
  const products = provisionings(config, db)
  const outcome = await withNode(config, db, (lightning) =>
    closeOrder({ db, lightning, clock: systemClock, products }, orderId),
  )
  switch (outcome.kind) {
    case 'closed':
      return {
        isDone: true,
        text: `${name} is closed: ${outcome.node === 'dead' ? 'its invoice can not be paid any more' : 'the node does not know its invoice'}.\n`,
      }
    case 'order not found':
      return notFound(name)
    case 'not open':
      return { isDone: false, text: `${name} is ${outcome.state} and not open.\n` }
    case 'quote stands':
      return {
        isDone: false,
        text: `Whoever has paid ${name} can prove it until ${rfc3339(outcome.until)}. Close it after that.\n`,
      }
    case 'other node':
      return {
        isDone: false,
        text: `The node does not know the invoice of ${name}, and is not known to be the one that made it. That one may have been paid: point MAYFLY_LIGHTNING_URL at it.\n`,
      }
    case 'node knows it':
      return {
        isDone: false,
        text:
          outcome.state === 'settled'
            ? `${name} is paid, says the node. The service settles it when it looks next.\n`
            : `The invoice of ${name} can still be paid, says the node.\n`,
      }
  }
}

async function repair(config: Config, db: Db, { orderId, name }: Named): Promise<Said> {
  const secrets = createSecrets(await secretsGiven(config)(db))
  const products = provisionings(config, db)
  const outcome = await repairOrder({ db, secrets, clock: systemClock, products }, orderId)
  switch (outcome.kind) {
    case 'repaired':
      return {
        isDone: true,
        text: `${name} is settled as ${outcome.publicId} until ${rfc3339(outcome.expiresAt)}. The buyer's next poll delivers it.\n`,
      }
    case 'not unfulfilled':
      return notUnfulfilled(name, outcome.state)
    default:
      return unrepaired(name, outcome)
  }
}

function unrepaired(
  name: string,
  outcome: Exclude<Repair, { kind: 'repaired' | 'not unfulfilled' }>,
): Said {
  switch (outcome.kind) {
    case 'order not found':
      return notFound(name)
    case 'other secret':
      return {
        isDone: false,
        text: `${name} was made under another secret. Set the MAYFLY_SECRET of the service.\n`,
      }
    case 'refused':
      return {
        isDone: false,
        text: `${name} can still not be provisioned: ${outcome.reason}. Nothing was changed: mend that, or pay it back.\n`,
      }
  }
}

/** The capability alone on stdout, as `mayfly import` takes it; what to know of it on stderr. */
async function deliver(config: Config, db: Db, { orderId, name }: Named): Promise<Said> {
  const secrets = createSecrets(await secretsGiven(config)(db))
  const products = provisionings(config, db)
  const outcome = await handOutOrder({ db, secrets, clock: systemClock, products }, orderId)
  switch (outcome.kind) {
    case 'handed out':
      process.stderr.write(
        `${name} is delivered and sealed: what follows is the only copy. Give it to the buyer alone.\n`,
      )
      return { isDone: true, text: `${outcome.body}\n` }
    case 'not settled':
      return {
        isDone: false,
        text: `${name} is ${outcome.state}: there is nothing to deliver.\n`,
      }
    case 'already delivered':
      return {
        isDone: false,
        text: `${name} was delivered${outcome.at === null ? '' : ` at ${rfc3339(outcome.at)}`}, and nothing is handed out twice. If the buyer did not get it, pay it back.\n`,
      }
    case 'over':
      return {
        isDone: false,
        text: `What ${name} sold ended at ${rfc3339(outcome.at)}, and nobody had come for it. Pay it back if that was your fault.\n`,
      }
    default:
      return unrepaired(name, outcome)
  }
}

async function refunded(config: Config, db: Db, { orderId, name }: Named): Promise<Said> {
  const deps = { db, clock: systemClock, products: provisionings(config, db) }
  const outcome = await noteRefund(deps, orderId)
  switch (outcome.kind) {
    case 'refunded':
      return { isDone: true, text: `${name} is refunded. Its buyer is told so.\n` }
    case 'order not found':
      return notFound(name)
    case 'not unfulfilled':
      return notUnfulfilled(name, outcome.state)
  }
}

const notUnfulfilled = (name: string, state: string): Said => ({
  isDone: false,
  text: `${name} is ${state} and not paid_unfulfilled.\n`,
})

const notFound = (name: string): Said => ({
  isDone: false,
  text: `No order is ${name} in this store.\n`,
})

function shown(facts: OrderFacts): string {
  const lines = Object.entries(facts).flatMap(([name, value]) => {
    if (value === null || (name === 'looked_up_at' && value === 0)) return []
    const isTime = name.endsWith('_at')
    return [`${name.padEnd(18)}${isTime ? rfc3339(Number(value)) : value}\n`]
  })
  return lines.join('')
}
