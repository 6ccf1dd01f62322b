/** How far the tools of `mayfly mcp` have read an inbox, in the vault. */
import { fromVault, inVault, type Place } from './vault.ts'

/** The last request that was handed over, or 0. */
export const lastSeen = (place: Place, inbox: string): number =>
  fromVault(place, 0, (db) =>
    Number(db.prepare('select last from reading where inbox = $inbox').get({ inbox })?.last ?? 0),
  )

/** It only grows: of two calls at once the one that got further counts. */
export const sawUpTo = (place: Place, inbox: string, sequence: number): void =>
  inVault(place, (db) => {
    db.prepare(
      `insert into reading values ($inbox, $sequence)
       on conflict do update set last = max(last, excluded.last)`,
    ).run({ inbox, sequence })
  })
