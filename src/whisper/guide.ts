/** WHISPER's part of /llms.txt. */
export const WHISPER_GUIDE = `## WHISPER: bytes that can be read a few times

Encrypt first with AES-256-GCM, and never send the key. POST {base_url}/api/payments/whisper
with Content-Type: application/octet-stream, X-Whisper-Plan: spark, standard or long, and optionally
X-Whisper-Read-Limit: <n> and X-Whisper-Reveal-At: <RFC 3339 time>. The body is the ciphertext.
Resource: {product, publicId, readToken, expiresAt}

- GET {base_url}/w/{publicId} with readToken spends one read and answers with the bytes.
- 425 with Retry-After before the reveal time; nothing is spent. 404 once it is used up or expired.
- Give the reader publicId, readToken and your key in another way. The last read deletes the bytes.
`
