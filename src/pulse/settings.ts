/** The JSON body of a change of settings: any of PulseSettings, and nothing else. */
import { Compile } from 'typebox/compile'
import { problem } from '../http/errors.ts'
import { parseJsonBytes } from '../lib/json.ts'
import { PulseSettings } from './schema.ts'

const settings = Compile(PulseSettings)

/** @throws Problem `invalid request body` for what is no JSON, `invalid settings` for any other. */
export function parseSettings(body: Buffer): PulseSettings {
  const value = parseJsonBytes(body)
  if (value === undefined) throw problem('invalid request body')
  if (!settings.Check(value) || !isText(value.name) || !isText(value.description)) {
    throw problem('invalid settings')
  }
  return value
}

/** JSON can spell half a surrogate pair, which is no character of any text. */
function isText(text: string | undefined): boolean {
  return text === undefined || text.isWellFormed()
}
