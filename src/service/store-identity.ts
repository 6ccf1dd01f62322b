/** A store belongs to one network and one kind of backend for good. It also notes the id of its node. */

import { attempt, type Db } from '../db/db.ts'
import { metaOf, noteOnce } from '../db/meta.ts'
import type { Network } from '../lightning/lightning.ts'
import { ConfigError } from './config.ts'

const OWNER = 'lightning'
const NODE = 'lightning_node'

/**
 * Notes the backend and network of the store at the first start, and checks them at every later one.
 *
 * `network` is null if the node cannot be reached: then the store must know it. `away` says why.
 * @returns the network of the store.
 * @throws ConfigError if the store belongs to others, so that real orders never meet a simulator.
 */
export async function bindStore(
  db: Db,
  {
    backend,
    network,
    away,
  }: { backend: string; network: Network | null; away?: string | undefined },
): Promise<Network> {
  const configured = network === null ? backend : `${backend} on ${network}`
  const known = network === null ? await metaOf(db, OWNER) : await noteOnce(db, OWNER, configured)
  if (known === null) {
    const why = away === undefined ? '' : ` ${away}.`
    throw new ConfigError(
      `The first start on a new store needs the Lightning node to answer.${why}`,
    )
  }
  const [knownBackend, knownNetwork] = known.split(' on ')
  if (knownBackend !== backend || (network !== null && knownNetwork !== network)) {
    throw new ConfigError(
      `This store belongs to ${known}, and MAYFLY_LIGHTNING_URL is ${configured}. ` +
        'Restore the setting, or choose another MAYFLY_DATABASE_URL.',
    )
  }
  return knownNetwork as Network
}

/**
 * Notes the id of the service's node. If the node was replaced, it also deletes the `cursors` into the old
 * node's settlements: a new node counts from 1, so nothing new would come after such a cursor.
 * @returns the previous node's id if this call noted a replacement, otherwise null.
 */
export async function noteNode(
  db: Db,
  nodeId: string,
  cursors: readonly string[],
): Promise<string | null> {
  const known = await noteOnce(db, NODE, nodeId)
  if (known === nodeId) return null
  const changed = await attempt(
    db.write({
      lockKey: NODE,
      statements: {
        node: {
          text: 'update meta set value = $1 where name = $2 and value = $3',
          values: [nodeId, NODE, known],
          expect: 1,
        },
        cursors: cursors.map((name) => ({
          text: 'delete from meta where name = $1',
          values: [name],
        })),
      },
    }),
  )
  return 'rows' in changed ? known : null
}
