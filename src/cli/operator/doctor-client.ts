/** The doctor's look at what a buyer needs: a wallet, a data folder and a budget. */

import { systemClock } from '../../lib/clock.ts'
import type { Config } from '../../service/config.ts'
import { dataFolder } from '../data-folder.ts'
import { budgetState, sats } from '../vault/budget.ts'
import { bad, type Finding, note, ok, tried } from './findings.ts'
import { isWritable, nearest } from './folders.ts'

export async function checkClient(config: Config): Promise<Finding[]> {
  return [await checkWallet(config), checkDataFolder(config), await checkBudget(config)]
}

function checkWallet({ walletUrl }: Config): Finding | Promise<Finding> {
  if (walletUrl === null) {
    return note(
      'wallet',
      'none: invoices are shown, to be paid elsewhere. Set MAYFLY_WALLET_URL to pay from a wallet',
    )
  }
  return tried('wallet', async () => {
    const { openWallet } = await import('../wallet.ts')
    const { close } = await openWallet(walletUrl)
    await close()
    return 'MAYFLY_WALLET_URL is valid. The wallet was not asked'
  })
}

/** Only buyers need a data folder. The system user of a service often has no home. */
function checkDataFolder({ walletUrl }: Config): Finding {
  const folder = dataFolder()
  const there = nearest(folder)
  if (isWritable(there)) return ok('data folder', `capabilities are kept in ${folder}`)
  return (walletUrl === null ? note : bad)(
    'data folder',
    `${there} cannot be written to, so no purchase can be saved. Set XDG_DATA_HOME to use another folder`,
  )
}

/** A file that cannot be read stops every payment from the wallet. */
const checkBudget = ({ walletUrl, maxSatsPerDay }: Config): Promise<Finding> =>
  tried(
    'budget',
    async () => {
      const { spentMsat } = budgetState({ folder: dataFolder(), now: systemClock.now })
      return `${sats(spentMsat)} of ${maxSatsPerDay} sat were paid today`
    },
    walletUrl === null ? note : bad,
  )
