/** How a job is started every so often and pings: lines for cron, systemd, GitHub Actions, Kubernetes and PowerShell. */

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

/** Where a job pings, with its token, and when it runs. */
export type Job = {
  /** `https://…/p/pulse_…` */
  url: string
  pingToken: string
  intervalSeconds: number
  /** Five fields of crontab in this zone, in place of the interval. */
  schedule: { cron: string; timeZone: string } | null
}

export type Snippet = { label: string; before?: string; text: string }

const CURL = 'curl -fsS -m 10 --retry 3 -X POST'
const FILE = '~/.mayfly-ping'

/** The file with the token: other users of a computer can see command lines. */
const tokenFile = ({ pingToken }: Job): Snippet => ({
  label: 'the file with the token',
  before:
    'Once, on the computer that runs the job: save the token in a file that only you can read.',
  text: `(umask 077; echo 'header = "Authorization: Bearer ${pingToken}"' > ${FILE})`,
})

const cronOf = ({ schedule, intervalSeconds }: Job): string | null =>
  schedule?.cron ?? cronFields(intervalSeconds)

/** The times of a simple crontab line as systemd writes them; others are left to the reader. */
function calendarOf({ cron, timeZone }: NonNullable<Job['schedule']>): string {
  const [, minute, hour, days] = /^(\d{1,2}) (\d{1,2}) \* \* (\*|1-5)$/.exec(cron) ?? []
  if (minute === undefined || hour === undefined) {
    return `# “${cron}” as systemd writes it (man systemd.time), in ${timeZone}:\nOnCalendar=`
  }
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}:00 ${timeZone}`
  return `OnCalendar=${days === '*' ? '' : 'Mon..Fri '}*-*-* ${time}`
}

/** What to paste for each runner: it tells the start of the job, and its exit code. */
export const SETUPS: Record<string, (job: Job) => Snippet[]> = {
  Cron(job) {
    const work = `C="${CURL} -K $HOME/.mayfly-ping"; $C ${job.url}/start; /path/to/job; $C ${job.url}/$?`
    const cron = cronOf(job)
    const zone = job.schedule ? ` The computer’s time zone must be ${job.schedule.timeZone}.` : ''
    return [
      tokenFile(job),
      cron === null
        ? {
            label: 'the loop',
            before: 'A crontab cannot express this interval. A loop can:',
            text: `while :; do ${work}; sleep ${job.intervalSeconds}; done`,
          }
        : {
            label: 'the line of crontab',
            before: `Then in the crontab.${zone}`,
            text: `${cron} ${work}`,
          },
      {
        label: 'the line of curl',
        before: 'For a job that only reports its success:',
        text: `/path/to/job && ${CURL} -K ${FILE} ${job.url}`,
      },
    ]
  },
  systemd(job) {
    const curl = `/usr/bin/${CURL} -K %h/.mayfly-ping`
    const every = job.schedule
      ? calendarOf(job.schedule)
      : `OnBootSec=1min\nOnUnitActiveSec=${job.intervalSeconds}s`
    return [
      tokenFile(job),
      {
        label: 'the service unit',
        before: 'In ~/.config/systemd/user/job.service:',
        text: `[Service]
Type=oneshot
ExecStartPre=-${curl} ${job.url}/start
ExecStart=/path/to/job
# A job that was killed has no exit code.
ExecStopPost=/bin/sh -c 'case $EXIT_STATUS in [0-9]*) s=$EXIT_STATUS;; *) s=fail;; esac; exec ${curl} ${job.url}/$$s'`,
      },
      {
        label: 'the timer unit',
        before: 'In job.timer beside it; then systemctl --user enable --now job.timer',
        text: `[Timer]\n${every}\nAccuracySec=1s\n\n[Install]\nWantedBy=timers.target`,
      },
    ]
  },
  'GitHub Actions'(job) {
    const curl = `${CURL} -H "Authorization: Bearer $TOKEN"`
    return [
      {
        label: 'the token',
        before: 'Save the token as the secret MAYFLY_PING_TOKEN of the repository.',
        text: job.pingToken,
      },
      {
        label: 'the workflow',
        before: 'In .github/workflows/job.yml. GitHub’s clock is UTC, and may be minutes late.',
        text: `on:
  schedule:
    - cron: '${cronOf(job) ?? '0 3 * * *'}'
jobs:
  job:
    runs-on: ubuntu-latest
    env:
      TOKEN: \${{ secrets.MAYFLY_PING_TOKEN }}
    steps:
      - run: ${curl} ${job.url}/start
      - run: /path/to/job
      - if: always()
        run: ${curl} ${job.url}/\${{ job.status == 'success' && '0' || 'fail' }}`,
      },
    ]
  },
  Kubernetes(job) {
    const curl = `${CURL} -H "Authorization: Bearer $TOKEN"`
    const zone = job.schedule ? `  timeZone: ${job.schedule.timeZone}\n` : ''
    return [
      {
        label: 'the secret',
        before: 'Once:',
        text: `kubectl create secret generic mayfly-ping --from-literal=token='${job.pingToken}'`,
      },
      {
        label: 'the CronJob',
        before: 'The image needs sh and curl.',
        text: `apiVersion: batch/v1
kind: CronJob
metadata: { name: job }
spec:
  schedule: '${cronOf(job) ?? '0 3 * * *'}'
${zone}  jobTemplate:
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: job
              image: IMAGE
              env:
                - name: TOKEN
                  valueFrom: { secretKeyRef: { name: mayfly-ping, key: token } }
              command: [sh, -c]
              args:
                - |
                  ${curl} ${job.url}/start
                  /path/to/job; code=$?
                  ${curl} ${job.url}/$code
                  exit $code`,
      },
    ]
  },
  PowerShell(job) {
    return [
      {
        label: 'the file with the token',
        before: 'Once, as the user that runs the job:',
        text: `Set-Content -NoNewline "$HOME\\.mayfly-ping" '${job.pingToken}'`,
      },
      {
        label: 'the script',
        before: 'The script that the Task Scheduler starts:',
        text: `$token = Get-Content "$HOME\\.mayfly-ping"
$ping = @{ Method = "Post"; TimeoutSec = 10; Headers = @{ Authorization = "Bearer $token" } }
Invoke-RestMethod @ping "${job.url}/start"
& C:\\path\\to\\job.exe
Invoke-RestMethod @ping "${job.url}/$([int]($LASTEXITCODE -ne 0))"`,
      },
    ]
  },
}
