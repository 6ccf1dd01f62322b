/** WHISPER's part of /llms.txt. */
export const WHISPER_GUIDE = `## WHISPER: bytes that can be read a few times

Encrypt first with AES-256-GCM, and never send the key. Buy: POST /api/payments/whisper, the ciphertext as its body,
with Content-Type: application/octet-stream, X-Whisper-Plan: spark, standard or long, and if you like
X-Whisper-Read-Limit: <n> and X-Whisper-Reveal-At: <RFC 3339 time>. You get:
{"product":"whisper","publicId","readToken","expiresAt"}.
With X-Whisper-Receipt: on you get a receiptToken, too: GET {base_url}/api/whisper/{publicId}/receipt says when
it was read, PUT …/receipt/alerts with {"destinations":[{"url":"https://…"}]} notifies of each read, and DELETE
{base_url}/api/whisper/{publicId} destroys it. With X-Whisper-Reveal-When: <switchId> it opens when a monitor falls
silent; the monitor's owner gets the switchId by POST /api/pulse/{publicId}/switch.

- GET {base_url}/w/{publicId} with readToken spends one read and answers with the bytes. 425 with
  Retry-After before the reveal time; nothing is spent. 404 once it is used up or expired.
- Mayfly's own readers ({base_url}/read, SDK, command line) open this envelope: the byte 1, an IV of 12 random
  bytes, and ciphertext and tag of AES-256-GCM under 32 fresh random bytes, with the additional data mayfly/whisper/1.
  The plaintext is 1 byte with the length of the file name, the name, 1 byte with the length of the media type, the
  type (both may be empty), 4 bytes with the length of the data (big-endian), the data, and zeros. Of L bytes before
  the zeros (256 if fewer) zeros make the next multiple of 2^(e-s), where e = floor(log2 L) and s = floor(log2 e) + 1.
  The reader's code is mayfly-whisper:1:{publicId}:{readToken}:{key in base64url without padding}.
- Give the reader publicId, readToken and your key in another way. The last read deletes the bytes.
`

/** What the skill of WHISPER is for, and when to use it. */
export const WHISPER_SKILL =
  'Buys a place for encrypted bytes that can be read only a few times, over Lightning and without an account. Use it to hand a secret, a key or a file to a person or another program, now or from a set time on.'
