/** What the operator's commands on orders work with. */
import { newId } from '../../src/lib/ids.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import { SECRET, type Shop, secretsOf } from './shop.ts'

const note = (name: string, value: string, expect = 1) => ({
  text: 'insert into meta (name, value) values ($1, $2)',
  values: [name, value],
  expect,
})

/** A product that notes each order that it provisions, or refuses it. `reserves`: also each that it lets go of. */
export const aProduct = ({ refuses = false, reserves = false } = {}): { catch: Provisioning } => ({
  catch: {
    newPublicId: () => newId('catch'),
    provision: ({ publicId, orderId }) => [note(publicId, orderId, refuses ? 2 : 1)],
    capability: () => null,
    ...(reserves ? { release: (orderId) => [note(`released ${orderId}`, '')] } : {}),
  },
})

export const deps = (
  { db, clock, node: lightning }: Pick<Shop, 'db' | 'clock' | 'node'>,
  products: { catch?: Provisioning } = aProduct(),
  secrets = secretsOf(SECRET),
) => ({ db, clock, lightning, secrets, products })
