/** The switch that opens a whisper when a monitor falls silent. */
import { isId } from '../lib/ids.ts'
import type { Cli } from './cli.ts'
import { loadPulse } from './saved.ts'

/** The switch of a saved monitor, or the id itself, which a monitor's owner has handed on. */
export async function switchOf(cli: Cli, given: string): Promise<string> {
  if (isId('pulse_switch', given)) return given
  const { capability, baseUrl } = loadPulse(cli, given)
  return (await cli.mayfly(baseUrl).pulse(capability).makeSwitch()).switchId
}
