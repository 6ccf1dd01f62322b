/** `mayfly order …`: what an operator does to one order that went wrong, beside the service. */
import { type Config, ConfigError } from '../config.ts'
import type { Db } from '../db/db.ts'
import { createHints } from '../db/hints.ts'
import { rfc3339, systemClock } from '../lib/clock.ts'
import { isId } from '../lib/ids.ts'
import { openLightning } from '../lightning/open.ts'
import {
  closeOrder,
  noteRefund,
  type OrderFacts,
  orderFacts,
  repairOrder,
} from '../payment/repair.ts'
import { createSecrets } from '../payment/secrets.ts'
import { openProducts, readAllPlans } from '../products.ts'
import { secretsGiven } from '../secret-file.ts'
import { bindStore } from '../store-identity.ts'
import { operateOnStore, type Said } from './operator.ts'

const USAGE = `Usage: mayfly order <command>

  order show <orderId>       what is known of an order, without its secrets
  order close <orderId>      end an open order whose invoice the node has lost
  order repair <orderId>     provision an order that was paid and could not be
  order refunded <orderId>   note that you have paid back such an order instead
`

type Act = (config: Config, db: Db, orderId: string) => Promise<Said>

const ACTS: Record<string, Act> = { show, close, repair, refunded }

export async function orderCommand([verb = '', orderId = '', ...rest]: string[]): Promise<number> {
  const act = ACTS[verb]
  if (!act || !isId('order', orderId) || rest.length > 0) {
    if (act && orderId !== '' && !isId('order', orderId)) {
      process.stderr.write(`${orderId} is not the id of an order.\n\n`)
    }
    process.stderr.write(USAGE)
    return 2
  }
  return operateOnStore((config, db) => act(config, db, orderId))
}

async function show(_config: Config, db: Db, orderId: string): Promise<Said> {
  const facts = await orderFacts(db, orderId)
  return facts ? { isDone: true, text: shown(facts) } : notFound(orderId)
}

async function close(config: Config, db: Db, orderId: string): Promise<Said> {
  const warn = (reason: string): void => void process.stderr.write(`${reason}\n`)
  const node = await openLightning(config.lightningUrl.url, { db, clock: systemClock, warn })
  try {
    if (node.problem) throw new ConfigError(node.problem.sentence)
    const { network } = await node.lightning.info()
    await bindStore(db, { backend: config.lightningUrl.kind, network })
    const { lightning } = node
    const deps = { db, lightning, clock: systemClock, products: provisionings(config, db) }
    const outcome = await closeOrder(deps, orderId)
    switch (outcome.kind) {
      case 'closed':
        return {
          isDone: true,
          text: `${orderId} is closed: ${outcome.node === 'dead' ? 'its invoice can not be paid any more' : 'the node does not know its invoice'}.\n`,
        }
      case 'order not found':
        return notFound(orderId)
      case 'not open':
        return { isDone: false, text: `${orderId} is ${outcome.state} and not open.\n` }
      case 'quote stands':
        return {
          isDone: false,
          text: `Whoever has paid ${orderId} can prove it until ${rfc3339(outcome.until)}. Close it after that.\n`,
        }
      case 'other node':
        return {
          isDone: false,
          text: `The node does not know the invoice of ${orderId}, and is not known to be the one that made it. That one may have been paid: point MAYFLY_LIGHTNING_URL at it.\n`,
        }
      case 'node knows it':
        return {
          isDone: false,
          text:
            outcome.state === 'settled'
              ? `${orderId} is paid, says the node. The service settles it when it looks next.\n`
              : `The invoice of ${orderId} can still be paid, says the node.\n`,
        }
    }
  } finally {
    await node.close()
  }
}

async function repair(config: Config, db: Db, orderId: string): Promise<Said> {
  const secrets = createSecrets(secretsGiven(config)())
  const products = provisionings(config, db)
  const outcome = await repairOrder({ db, secrets, clock: systemClock, products }, orderId)
  switch (outcome.kind) {
    case 'repaired':
      return {
        isDone: true,
        text: `${orderId} is settled as ${outcome.publicId} until ${rfc3339(outcome.expiresAt)}. The buyer's next poll delivers it.\n`,
      }
    case 'order not found':
      return notFound(orderId)
    case 'not unfulfilled':
      return notUnfulfilled(orderId, outcome.state)
    case 'other secret':
      return {
        isDone: false,
        text: `${orderId} was made under another secret. Set the MAYFLY_SECRET of the service.\n`,
      }
    case 'refused':
      return {
        isDone: false,
        text: `${orderId} can still not be provisioned. Nothing was changed: pay it back.\n`,
      }
  }
}

async function refunded(config: Config, db: Db, orderId: string): Promise<Said> {
  const deps = { db, clock: systemClock, products: provisionings(config, db) }
  const outcome = await noteRefund(deps, orderId)
  switch (outcome.kind) {
    case 'refunded':
      return { isDone: true, text: `${orderId} is refunded. Its buyer is told so.\n` }
    case 'order not found':
      return notFound(orderId)
    case 'not unfulfilled':
      return notUnfulfilled(orderId, outcome.state)
  }
}

/** What each product does to provision, and to let go of what it reserved. */
function provisionings(config: Config, db: Db) {
  const products = openProducts({
    plans: readAllPlans(config.catalog),
    unpaidBytes: config.unpaidBytes,
    db,
    // Who looks at what is provisioned here learns of it by looking again.
    hints: createHints(),
    clock: systemClock,
    isProxied: () => false,
    locate: () => null,
  })
  return Object.fromEntries(products.map(({ product, provisioning }) => [product, provisioning]))
}

const notUnfulfilled = (orderId: string, state: string): Said => ({
  isDone: false,
  text: `${orderId} is ${state} and not paid_unfulfilled.\n`,
})

const notFound = (orderId: string): Said => ({
  isDone: false,
  text: `No order is ${orderId} in this store.\n`,
})

function shown(facts: OrderFacts): string {
  const lines = Object.entries(facts).flatMap(([name, value]) => {
    if (value === null || (name === 'looked_up_at' && value === 0)) return []
    const isTime = name.endsWith('_at')
    return [`${name.padEnd(18)}${isTime ? rfc3339(Number(value)) : value}\n`]
  })
  return lines.join('')
}
