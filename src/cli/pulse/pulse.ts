/** `mayfly pulse …`: the commands of a monitor, for its owner and for the job that pings. */
import type { Command } from 'commander'
import { client } from '../cli.ts'
import { loadPing } from '../vault/saved.ts'
import { addPulseHistory } from './history.ts'
import { addPulseRotate, refusedPing } from './rotate.ts'
import { addPulseRun } from './run.ts'
import { addPulseSchedule, addPulseSet, addPulseSwitch } from './settings.ts'

export function addPulse(program: Command): void {
  const parent = program.command('pulse').description('ping and set up a heartbeat monitor')
  addPing(parent)
  addPulseRun(parent)
  addPulseHistory(parent)
  addPulseSet(parent)
  addPulseSwitch(parent)
  addPulseSchedule(parent)
  addPulseRotate(parent)
}

/** `mayfly pulse ping`, and `mayfly ping`. */
export function addPing(parent: Command): void {
  client(
    parent.command('ping').description('send one heartbeat').argument('<name>', 'the monitor'),
    { examples: [`${parent.parent ? 'mayfly pulse' : 'mayfly'} ping backup`] },
    async (cli, _options, [name]) => {
      const { capability, baseUrl } = loadPing(cli, name)
      try {
        await cli.mayfly(baseUrl).pulse(capability).ping()
      } catch (error) {
        throw refusedPing(error, name)
      }
      cli.answer({ name, pinged: true }, 'Pinged.\n')
    },
  )
}
