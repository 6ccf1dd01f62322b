/** New ping tokens that are asked for. What a killed process left says why the saved token pings no more. */
import { CliError } from '../exit.ts'
import { fromVault, inVault, otherProcess, type Place } from './vault.ts'

/** @throws CliError if another process asks for one. */
export const beginRotation = (place: Place, publicId: string): void =>
  inVault(place, (db) => {
    const row = db.prepare('select * from rotation where public_id = $publicId').get({ publicId })
    const heldBy = row === undefined ? null : otherProcess(row.pid, row.begun_at)
    if (heldBy !== null) {
      throw new CliError(`It gets a new ping token already, in process ${heldBy}.`)
    }
    db.prepare('insert or replace into rotation values ($publicId, $pid, $now)').run({
      ...{ publicId, pid: process.pid, now: Date.now() },
    })
  })

export const endRotation = (place: Place, publicId: string): void =>
  inVault(place, (db) => {
    db.prepare('delete from rotation where public_id = $publicId').run({ publicId })
  })

/** Whether one has begun and has not ended. */
export const isRotating = (place: Place, publicId: string): boolean =>
  fromVault(place, false, (db) => {
    const sql = 'select 1 from rotation where public_id = $publicId'
    return db.prepare(sql).get({ publicId }) !== undefined
  })
