import { URL_FORMATS } from '../lib/alert-formats.ts'
import { GRACE_SECONDS, INTERVAL_SECONDS, LENGTHS } from '../lib/monitor-bounds.ts'

/** What /llms.txt says of PULSE. */
export const PULSE_GUIDE = `## PULSE: a heartbeat monitor

Buy: POST /api/payments/pulse, Content-Type: application/json, body {"planId":"spark"}
(or "standard", "long"; GET /api/catalog says which are on sale). Save all that you get:
{"product":"pulse","publicId","ownerToken","pingToken","expiresAt"}.

- Ping: POST /p/{publicId} with Authorization: Bearer {pingToken}. Any body is ignored. 204: counted.
- Report runs, if you like: POST /p/{publicId}/start, then /p/{publicId}/{exit code} or /fail, with
  ?rid={uuid} where runs overlap. A failed run is late until one succeeds. Each costs a heartbeat.
- Read: GET /api/pulse/{publicId} with the ownerToken. state: waiting, operational, late, exhausted or expired.
  GET …/history: its whole life in pages (limit 1 to 200, cursor), with the uptime over 24 h, 7 d and 30 d.
- Set: PATCH /api/pulse/{publicId} with any of {"name","description","expectedIntervalSeconds",
  "graceSeconds","publicStatusEnabled"}. An interval is ${INTERVAL_SECONDS.minimum} to ${INTERVAL_SECONDS.maximum} seconds, a grace ${GRACE_SECONDS.minimum} to ${GRACE_SECONDS.maximum} and at
  least the plan's. A name has up to ${LENGTHS.name} characters, a description ${LENGTHS.description}. Late: interval and grace passed without a ping.
- Or at set times: PUT /api/pulse/{publicId}/schedule with {"cron":"0 3 * * 1-5","timeZone":"UTC","graceSeconds":900}.
- Share: with publicStatusEnabled anyone reads GET /api/pulse/public/{publicStatusId}; the id is in the owner's status.
- Get alerts: PUT /api/pulse/{publicId}/alerts with {"destinations":[{"url":"https://…","format":"standard"}]} (or
  ${URL_FORMATS.slice(1).join(', ')}; or {"inbox","ingestToken"}); GET says what was sent. A standard one must echo the test's nonce.
- Destroy: DELETE /api/pulse/{publicId}.
`

/** What the skill of PULSE is for, and when to use it. */
export const PULSE_SKILL =
  'Buys a heartbeat monitor over Lightning, without an account, and reads its state. Use it to notice when a cron job, a backup or an agent stops running, or to publish whether it runs.'
