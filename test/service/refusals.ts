/** Wrong settings. */
import assert from 'node:assert/strict'
import { ConfigError, readConfig } from '../../src/service/config.ts'

/** The message with which this environment is refused. */
export function messageOf(environment: Record<string, string>): string {
  try {
    readConfig(environment)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.message
  }
  return assert.fail(`${JSON.stringify(environment)} was accepted`)
}
