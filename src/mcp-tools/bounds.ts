/** The longest ciphertext that a call carries. Longer ones are bought over HTTP. */
export const MAX_CIPHERTEXT_BYTES = 1024 * 1024
