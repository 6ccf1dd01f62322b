/**
 * The owner token of a capability, and replacing tokens. Another owner token is only offered: it takes over with its first
 * use, so an owner whose answer was lost still has the one before.
 */
import { randomBytes } from 'node:crypto'
import { attempt, type Db, type Statement } from '../db/db.ts'
import { equalBytes } from '../lib/bytes.ts'
import type { Clock } from '../lib/clock.ts'
import { type TokenKind, tokenOf } from '../lib/ids.ts'
import type { Sealing } from '../payment/sealing.ts'
import { isTokenOf, tokenHash } from '../secrets/tokens.ts'

type OwnedRow = {
  public_id: string
  owner_token_hash: Uint8Array
  next_owner_token_hash: Uint8Array | null
}

/** Whether a capability has the owner token still with which it was read: what follows it ends with that. */
export const hasSameOwner = (
  one: Pick<OwnedRow, 'owner_token_hash'>,
  other: Pick<OwnedRow, 'owner_token_hash'>,
): boolean => equalBytes(one.owner_token_hash, other.owner_token_hash)

export function createOwnerTokens<Row extends OwnedRow>({
  db,
  clock,
  sealing,
  kind,
  table,
  find,
}: {
  db: Db
  clock: Clock
  sealing: Sealing
  kind: TokenKind
  /** Has the columns of `OwnedRow`. */
  table: string
  /** The capability, or null if it is unknown, or its owner may not see it. */
  find(publicId: string): Promise<Row | null>
}) {
  /** Replaces a token by a new one of this kind. Returns null if a statement is refused. */
  async function replace(
    of: TokenKind,
    { public_id: publicId }: Row,
    statements: (hash: Uint8Array) => Statement[],
  ): Promise<string | null> {
    const token = tokenOf(of, randomBytes(32))
    const done = await attempt(
      db.write({
        lockKey: publicId,
        statements: {
          token: statements(tokenHash(token)),
          // Sealed with the token: a repeated sale would hand out one that is of no use.
          seal: sealing.statements(publicId, clock.now()),
        },
      }),
    )
    if ('refused' in done) return null
    sealing.sealed(publicId)
    return token
  }

  return {
    /** The capability that this token owns, or null. An offered token takes over. */
    async owned(publicId: string, token: string): Promise<Row | null> {
      const row = await find(publicId)
      if (!row || isTokenOf(kind, token, row.owner_token_hash)) return row
      const next = row.next_owner_token_hash
      if (next === null || !isTokenOf(kind, token, next)) return null
      // Refused if another token was offered since.
      const takeOver: Statement = {
        text: `update ${table} set owner_token_hash = $2, next_owner_token_hash = null
          where public_id = $1 and next_owner_token_hash = $2`,
        values: [publicId, next],
        expect: 1,
      }
      await attempt(db.write({ lockKey: publicId, statements: { takeOver } }))
      // Two first uses at once: the one that lost owns it all the same.
      const now = await find(publicId)
      return now && isTokenOf(kind, token, now.owner_token_hash) ? now : null
    },

    /** Offers another owner token. Returns null if the one that the row was read with owns it no more. */
    offer: (row: Row): Promise<string | null> =>
      replace(kind, row, (hash) => [
        {
          text: `update ${table} set next_owner_token_hash = $3
            where public_id = $1 and owner_token_hash = $2`,
          values: [row.public_id, row.owner_token_hash, hash],
          expect: 1,
        },
      ]),

    replace,
  }
}
