/** Parses the JSON body of a change of settings: any members of PulseSettings, and no others. */
import { Compile } from 'typebox/schema'
import { problem } from '../http/errors.ts'
import { parseStrictJsonBytes } from '../lib/json.ts'
import { PulseSettings } from './schema.ts'

const settings = Compile(PulseSettings)

/** @throws Problem `invalid request body` for invalid JSON, `invalid settings` for anything else. */
export function parseSettings(body: Buffer): PulseSettings {
  const value = parseStrictJsonBytes(body)
  if (value === undefined) throw problem('invalid request body')
  if (!settings.Check(value) || !isText(value.name) || !isText(value.description)) {
    throw problem('invalid settings')
  }
  return value
}

/** JSON can escape a lone surrogate, which is not a character. */
function isText(text: string | undefined): boolean {
  return text === undefined || text.isWellFormed()
}
