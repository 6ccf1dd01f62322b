/** Clients of other people, buying on the simulator. */
import { clientsBuy } from './client-market.ts'
import { sellingOnSimulator } from './simulator-market.ts'

clientsBuy('the simulator', sellingOnSimulator)
