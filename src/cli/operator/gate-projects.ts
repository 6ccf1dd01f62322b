/** Opens the projects of GATE for the operator's commands, on the store of the running server. */
import { openProvider } from '../../gate/open.ts'
import { createProjects, ProjectError, type Projects, UnknownProject } from '../../gate/projects.ts'
import { createSimulator } from '../../lightning/simulator.ts'
import { LnurlError } from '../../protocol/lnurl.ts'
import { outboundRules } from '../../service/outbound-rules.ts'
import { bindStore } from '../../service/store-identity.ts'
import { CliError, notThere } from '../exit.ts'
import type { Output } from '../output.ts'
import { type Answer, withStore } from './command.ts'

/**
 * Runs the work on the store of the settings.
 * @param mayCreate as `withStore` says
 * @throws CliError if the operator can fix it.
 */
export function withProjects(
  output: Output,
  { work, mayCreate }: { work: (projects: Projects) => Promise<Answer>; mayCreate: boolean },
): Promise<Answer> {
  return withStore(async ({ config, db, clock }) => {
    const { lightningUrl, network: configured, quoteSeconds } = config
    const isSimulator = lightningUrl.kind === 'simulator'
    const network = await bindStore(db, {
      backend: lightningUrl.kind,
      network: isSimulator ? 'regtest' : configured,
    })
    const outbound = outboundRules(config, network)
    const { allowed } = outbound
    const simulator = isSimulator ? await createSimulator({ db, clock }) : null
    const provider = openProvider({ simulator, outbound, network, clock, quoteSeconds })
    try {
      const answer = await work(createProjects({ db, provider, allowed, clock }))
      if (config.gate === 'off') {
        output.warn('MAYFLY_GATE is off here. The service offers GATE only when it is `on`.')
      }
      return answer
    } catch (error) {
      throw explained(error)
    } finally {
      await provider.close()
    }
  }, mayCreate)
}

function explained(error: unknown): unknown {
  if (error instanceof UnknownProject) return notThere(error.message)
  if (error instanceof ProjectError) return new CliError(error.message)
  if (error instanceof LnurlError) {
    return new CliError(`The address cannot be used: ${error.message}.`)
  }
  return error
}
