import { createHints } from '../../src/db/hints.ts'
import { hintsContract } from '../contract/hints.ts'

hintsContract('in the process', async () => createHints())
