/** What /llms.txt says of PULSE. */
export const PULSE_GUIDE = `## PULSE: a heartbeat monitor

Buy: POST /api/payments/pulse, Content-Type: application/json, body {"planId":"spark"}
(or "standard", "long").

You get: {"product":"pulse","publicId","ownerToken","pingToken","expiresAt"}. Save all of it.

- Ping: POST /p/{publicId} with Authorization: Bearer {pingToken}. Any body is ignored. 204: counted.
- Read: GET /api/pulse/{publicId} with Authorization: Bearer {ownerToken}. state is waiting,
  operational, late, exhausted or expired.
- Set: PATCH /api/pulse/{publicId} with any of {"name","description","expectedIntervalSeconds",
  "graceSeconds","publicStatusEnabled"}. With sharing on, anyone reads
  GET /api/pulse/public/{publicStatusId}; the owner's status has the id.
- Destroy: DELETE /api/pulse/{publicId}.
`
