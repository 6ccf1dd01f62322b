/** The options that name what is sold. Commander refuses any other value, and completion offers these. */
import { Option } from 'commander'
import { PLAN_IDS, PRODUCT_NAMES } from '../lib/product-names.ts'

export const planOption = (description = 'spark, standard or long'): Option =>
  new Option('--plan <plan>', description).choices(PLAN_IDS)

export const productOption = (description = PRODUCT_NAMES.join(', ')): Option =>
  new Option('--product <product>', description).choices(PRODUCT_NAMES)
