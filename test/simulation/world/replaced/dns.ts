/** Stands for `node:dns` in the way out to strangers: the names of the run's servers, and no others. */
import { world } from '../world.ts'

/** A public address. Nothing connects to it: `undici.ts` calls the server by its name. */
const ADDRESS = '1.1.1.1'

class Resolver {
  setServers(): void {}
  cancel(): void {}

  resolve4(hostname: string): Promise<string[]> {
    const { scheduler, outside } = world()
    const process = scheduler.owner()
    const isKnown = [...outside.hosts.keys()].some((host) => host.split(':')[0] === hostname)
    return new Promise((resolve, reject) => {
      const answer = (): void =>
        isKnown
          ? resolve([ADDRESS])
          : reject(Object.assign(new Error('ENOTFOUND'), { code: 'ENOTFOUND' }))
      scheduler.after(scheduler.random.next() * 10, answer, process)
    })
  }

  async resolve6(): Promise<string[]> {
    return []
  }
}

// biome-ignore lint/style/noDefaultExport: the service imports the default of `node:dns`
export default { getServers: (): string[] => [], promises: { Resolver } }
