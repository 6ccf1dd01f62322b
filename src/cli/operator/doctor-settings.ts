/** The doctor's look at settings that only a start would refuse, and at the public address. */

import { messageOf } from '../../lib/errors.ts'
import { objectIn } from '../../lib/json.ts'
import { reasonOf } from '../../lib/reason.ts'
import type { Config } from '../../service/config.ts'
import { bad, type Finding, note, ok, tried } from './findings.ts'

/** Each of these stops a start, or a reload. */
export async function checkFiles(config: Config): Promise<Finding[]> {
  return [
    await tried('plans', async () => {
      const { readAllPlans } = await import('../../service/products.ts')
      const plans = Object.values(readAllPlans(config.catalog)).flatMap((of) => Object.values(of))
      if (!plans.some(({ available }) => available)) throw new Error('no plan is on sale')
      return 'the plans can be sold'
    }),
    await tried('rates', async () => {
      const { ALL_LIMITS } = await import('../../service/products.ts')
      const { readRates } = await import('../../service/rates.ts')
      readRates(config.rateLimits, ALL_LIMITS, { isSimulator: true })
      return 'the rate limits can be used'
    }),
    ...(config.geoipDatabase.length === 0 ? [] : [await checkLocations(config.geoipDatabase)]),
  ]
}

function checkLocations(files: readonly string[]): Promise<Finding> {
  return tried('locations', async () => {
    const { openLocations } = await import('../../catch/ip-location.ts')
    await openLocations(files, () => undefined).catch((error: unknown) => {
      throw new Error(`MAYFLY_GEOIP_DATABASE must name readable .mmdb files: ${messageOf(error)}`)
    })
    return 'the databases of locations can be read'
  })
}

/** What would give everything away, or lets strangers steer the service. */
export async function checkExposure(config: Config): Promise<Finding[]> {
  const { refusePublicSimulator } = await import('../../service/start-checks.ts')
  const findings: Finding[] = []
  try {
    refusePublicSimulator(config)
  } catch (error) {
    findings.push(bad('simulator', messageOf(error)))
  }
  if (config.network === 'mainnet' && config.allowedHosts.size > 0) {
    findings.push(bad('outbound', 'MAYFLY_ALLOWED_HOSTS must be empty on mainnet.'))
  }
  return findings
}

/** How long the public address may take to answer. */
const ANSWER_MS = 10_000

/** Whether the public address leads to a Mayfly. Some networks cannot reach their own public address. */
export async function checkPublicAddress({ baseUrl }: Config): Promise<Finding[]> {
  if (baseUrl === null) return []
  try {
    const answer = await fetch(`${baseUrl}/health`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    return objectIn(await answer.text())?.service === 'mayfly'
      ? [ok('public address', `${baseUrl} leads to a Mayfly`)]
      : [bad('public address', `${baseUrl} answers, but not as Mayfly. Look at the proxy in front`)]
  } catch (error) {
    const why = reasonOf(error) ?? 'there is no answer'
    const says = `${baseUrl} does not answer from this machine: ${why}. Try it from elsewhere: DNS, certificate, firewall and the proxy lead to it`
    return [note('public address', says)]
  }
}
