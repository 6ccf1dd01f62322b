/** Stands for `src/http/pages/pages.ts`: nobody looks at pages here. */
import type { createPages as real } from '../../../../src/http/pages/pages.ts'

export const createPages: typeof real = () => ({
  sendNotFoundPage: () => false,
  mount: () => undefined,
})
