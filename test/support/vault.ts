/** Looks into a user's vault, and changes what is saved behind the back of the commands. */
import { DatabaseSync } from 'node:sqlite'
import { vaultFile } from '../../src/cli/vault/vault.ts'

/** Runs one statement. */
export function inVaultOf(folder: string, sql: string, ...values: string[]) {
  const db = new DatabaseSync(vaultFile(folder), { timeout: 10_000 })
  try {
    return db.prepare(sql).all(...values)
  } finally {
    db.close()
  }
}

/** The text of all capabilities, as `export` writes it. */
export const savedTexts = (folder: string): string[] =>
  inVaultOf(folder, 'select text from capability').map(({ text }) => String(text))

/** The text of the capability with this name. */
export const savedText = (folder: string, name: string): string =>
  String(inVaultOf(folder, 'select text from capability where name = ?', name)[0]?.text ?? '')

/** Puts another text in its place. */
export function putSaved(folder: string, name: string, text: string): void {
  inVaultOf(folder, 'insert or replace into capability (name, text) values (?, ?)', name, text)
}
