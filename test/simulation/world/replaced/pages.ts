/** Stands for `src/http/pages/pages.ts`: nobody looks at pages here. */
import type { Pages } from '../../../../src/http/pages/pages.ts'

export const createPages = (): Pages => ({ sendNotFoundPage: () => false, mount: () => undefined })
