/**
 * `mayfly completion bash|zsh|fish`: the completion script of a shell, generated from the commands.
 * The script contains all of them, so that a Tab starts no process.
 */
import type { Command, Option } from 'commander'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { finish, type GlobalOptions, openOutput } from './output.ts'

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print the completion script of a shell')
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText(
      'after',
      examples(
        'mayfly completion bash > ~/.local/share/bash-completion/completions/mayfly',
        'mayfly completion zsh > ~/.zfunc/_mayfly        (a folder of $fpath)',
        'mayfly completion fish > ~/.config/fish/completions/mayfly.fish',
      ),
    )
    .action(async function action(this: Command, shell: string) {
      const options = this.optsWithGlobals<GlobalOptions>()
      process.exitCode = await finish(options, async () => {
        const script = completionScript(program, shell)
        openOutput(options, options.json ?? false).answer({ shell, script }, script)
        return EXIT.ok
      })
    })
}

/** @throws CliError for an unsupported shell. */
export function completionScript(program: Command, shell: string): string {
  if (shell === 'bash') return bashScript(placesOf(program))
  if (shell === 'zsh') return zshScript(placesOf(program))
  if (shell === 'fish') return fishScript(placesOf(program))
  throw new CliError('A completion script is for bash, zsh or fish.', EXIT.usage)
}

/** What can follow one command on the command line. */
type Place = { path: string; commands: Described[]; options: Flag[] }
type Described = { name: string; description: string }
type Flag = Described & { takesValue: boolean }

/** A place for each command: ` catch listen` is the path of `mayfly catch listen`. */
function placesOf(program: Command): Place[] {
  const common = program.options.map(flagOf).filter(({ name }) => name !== '--version')
  const help = { name: '--help', description: 'show the help of the command', takesValue: false }
  const below = (command: Command, path: string): Place[] => [
    {
      path,
      commands: command.commands.map((child) => ({
        name: child.name(),
        description: child.description(),
      })),
      options: [...(path === '' ? [] : command.options.map(flagOf)), ...common, help],
    },
    ...command.commands.flatMap((child) => below(child, `${path} ${child.name()}`)),
  ]
  return below(program, '')
}

const flagOf = ({ long, flags, description, required, optional }: Option): Flag => ({
  name: long ?? flags,
  description,
  takesValue: required || optional,
})

const paths = (places: Place[]): string[] =>
  places.map(({ path }) => path).filter((path) => path !== '')

function flagsWithValue(places: Place[]): string[] {
  const flags = places.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue))
  return [...new Set(flags.map(({ name }) => name))]
}

/** Like the other scripts, it walks through the words before the cursor to find the current place. */
function bashScript(places: Place[]): string {
  const cases = places.map(
    ({ path, commands, options }) =>
      `    '${path}') commands='${namesOf(commands)}' options='${namesOf(options)}' ;;\n`,
  )
  return `# bash completion of mayfly
_mayfly() {
  local current=\${COMP_WORDS[COMP_CWORD]} at='' word value='' i commands options
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $value ]]; then value=''; continue; fi
    case $word in
      --) return ;;
      ${flagsWithValue(places).join('|')}) value=1; continue ;;
      -*) continue ;;
    esac
    case "$at $word" in
      ${paths(places).map(quoted).join('|')}) at="$at $word" ;;
    esac
  done
  if [[ $value ]]; then return; fi
  case $at in
${cases.join('')}  esac
  if [[ $current == -* ]]; then commands=$options; fi
  COMPREPLY=($(compgen -W "$commands" -- "$current"))
}
complete -o default -F _mayfly mayfly
`
}

function zshScript(places: Place[]): string {
  const array = (all: Described[]): string =>
    all.map(({ name, description }) => quoted(`${name}:${description}`)).join(' ')
  const cases = places.map(
    ({ path, commands, options }) =>
      `    '${path}') commands=(${array(commands)}) options=(${array(options)}) ;;\n`,
  )
  return `#compdef mayfly
_mayfly() {
  local at='' word value='' i
  local -a commands options
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ -n $value ]]; then value=''; continue; fi
    case $word in
      --) _files; return ;;
      ${flagsWithValue(places).join('|')}) value=1; continue ;;
      -*) continue ;;
    esac
    case "$at $word" in
      ${paths(places).map(quoted).join('|')}) at="$at $word" ;;
    esac
  done
  if [[ -n $value ]]; then _files; return; fi
  case $at in
${cases.join('')}  esac
  if [[ $PREFIX == -* ]]; then _describe -o option options
  elif (( $#commands )); then _describe command commands
  else _files
  fi
}
if [[ $funcstack[1] == _mayfly ]]; then _mayfly "$@"; else compdef _mayfly mayfly; fi
`
}

function fishScript(places: Place[]): string {
  const lines = places.flatMap(({ path, commands, options }) => {
    const start = `complete -c mayfly -n "__mayfly_at '${path}'"`
    return [
      ...commands.map(
        ({ name, description }) => `${start} -f -a ${name} -d ${fishQuoted(description)}\n`,
      ),
      ...options.map(
        ({ name, description, takesValue }) =>
          `${start} -l ${name.slice(2)}${takesValue ? ' -r' : ''} -d ${fishQuoted(description)}\n`,
      ),
    ]
  })
  return `# fish completion of mayfly
function __mayfly_at
  set -l at ''
  set -l value ''
  for word in (commandline -opc)[2..]
    if test -n "$value"
      set value ''
      continue
    end
    switch $word
      case --
        return 1
      case ${flagsWithValue(places).join(' ')}
        set value 1
        continue
      case '-*'
        continue
    end
    switch "$at $word"
      case ${paths(places).map(quoted).join(' ')}
        set at "$at $word"
    end
  end
  test -z "$value" -a "$at" = "$argv[1]"
end
${lines.join('')}`
}

const namesOf = (all: Described[]): string => all.map(({ name }) => name).join(' ')

/** Quotes a text for bash and zsh. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const fishQuoted = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
