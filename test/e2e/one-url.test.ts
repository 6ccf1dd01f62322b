/** Clients of other people that know an address and a wallet, buying on the simulator. */
import { clientsBuyByUrl } from './one-url-market.ts'
import { sellingOnSimulator } from './simulator-market.ts'

clientsBuyByUrl('the simulator', sellingOnSimulator)
