// Loaded before each script of package.json: an older Node cannot read TypeScript, and would say only that.
import { isTooOld, tooOld } from '../bin/node-version.mjs'

if (isTooOld) {
  const script = process.env.npm_lifecycle_event
  process.stderr.write(tooOld(`npm ci${script ? ` && npm run ${script}` : ''}`))
  process.exit(1)
}
