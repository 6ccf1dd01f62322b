/** Stands for `src/http/pages.ts`: nobody looks at pages here. */
import type { Pages } from '../../../../src/http/pages.ts'

export const createPages = (): Pages => ({ sendNotFoundPage: () => false, mount: () => undefined })
