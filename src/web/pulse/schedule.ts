/** How a job is started every so often: a line of crontab, or a loop where cron has no line for the interval. */

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WEEK = 7 * DAY

/**
 * The five fields of crontab that start a job every so many seconds, or null if there are none. Cron begins
 * anew with each hour and each day, so it can only say what divides them.
 */
export function cronFields(seconds: number): string | null {
  if (seconds === MINUTE) return '* * * * *'
  if (seconds % MINUTE === 0 && HOUR % seconds === 0 && seconds < HOUR) {
    return `*/${seconds / MINUTE} * * * *`
  }
  if (seconds === HOUR) return '0 * * * *'
  if (seconds % HOUR === 0 && DAY % seconds === 0 && seconds < DAY) {
    return `0 */${seconds / HOUR} * * *`
  }
  if (seconds === DAY) return '0 0 * * *'
  return seconds === WEEK ? '0 0 * * 0' : null
}
