/** Parses the JSON body of a change of settings: any members of PulseSettings, and no others. */
import { Compile } from 'typebox/schema'
import { invalid } from '../http/errors.ts'
import { createFaultFinder } from '../http/validation.ts'
import { hasInvisible } from '../lib/invisible.ts'
import { parseStrictJsonBytes } from '../lib/json.ts'
import { PulseSettings } from './schema.ts'

const settings = Compile(PulseSettings)
const faultIn = createFaultFinder(PulseSettings)

/** @throws Problem `invalid request body` for invalid JSON, `invalid settings` for anything else. */
export function parseSettings(body: Buffer): PulseSettings {
  const value = parseStrictJsonBytes(body)
  if (value === undefined) throw invalid('invalid request body', faultIn(value))
  if (!settings.Check(value) || !isName(value.name) || !isText(value.description)) {
    throw invalid('invalid settings', faultIn(value))
  }
  return value
}

/** JSON can escape a lone surrogate, which is not a character. */
function isText(text: string | undefined): boolean {
  return text === undefined || text.isWellFormed()
}

/** What looks like another monitor's name is none. */
const isName = (name: string | undefined): boolean => name === undefined || !hasInvisible(name)
