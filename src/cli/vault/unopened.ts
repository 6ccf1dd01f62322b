/**
 * The fetched bytes of whispers, until they are decrypted and written, in the vault. A spent read returns its bytes
 * once, so a wrong password, a full disk or a kill must not lose them. They stay encrypted, and the key is not stored
 * with them.
 */
import { randomBytes } from 'node:crypto'
import { change, inVault, type Place, rowsIn } from './vault.ts'

export type Unopened = { id: number; envelope: Uint8Array<ArrayBuffer> }

/** The bytes of an earlier read of this whisper, or null. */
export function findUnopened(place: Place, publicId: string): Unopened | null {
  const find = 'select id, envelope from unopened where public_id = $publicId limit 1'
  const [row] = rowsIn(place, find, { publicId })
  if (row === undefined) return null
  return { id: Number(row.id), envelope: new Uint8Array(row.envelope as Uint8Array) }
}

/**
 * Makes room for this many bytes in the file, so that a full disk is noticed before the read is spent. The file keeps
 * the pages of a deleted row for the next one.
 */
export function makeRoom(place: Place, bytes: number): void {
  // Random bytes, since some file systems do not allocate zeros.
  dropUnopened(place, keepUnopened(place, 'room', randomBytes(bytes)))
}

/** Writes what a read brought. Returns when it is on disk. */
export function keepUnopened(
  place: Place,
  publicId: string,
  envelope: Uint8Array<ArrayBuffer>,
): Unopened {
  return inVault(place, (db) => {
    const { lastInsertRowid } = db
      .prepare('insert into unopened (public_id, envelope) values ($publicId, $envelope)')
      .run({ publicId, envelope })
    return { id: Number(lastInsertRowid), envelope }
  })
}

export const dropUnopened = (place: Place, { id }: Pick<Unopened, 'id'>): unknown =>
  change(place, 'delete from unopened where id = $id', { id })

/** Gives up all that reads of this whisper brought. */
export const forgetUnopened = (place: Place, publicId: string): unknown =>
  change(place, 'delete from unopened where public_id = $publicId', { publicId })
