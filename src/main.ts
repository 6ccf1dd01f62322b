/** The entry: runs the command that the arguments name. */
import { useCompileCache } from '../bin/compile-cache.mjs'

// `bin/mayfly.mjs` does so as well, and is passed by where `node dist/main.js` is the service.
useCompileCache()
const { runProgram } = await import('./cli/program.ts')
process.exitCode = await runProgram(process.argv.slice(2))
