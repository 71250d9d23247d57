"""`longspan completion SHELL`: a script that lets the shell complete verbs, options and their values."""

import argparse
import re
from typing import NamedTuple

from longspan.cli.parsing import Verb

SHELLS = ("bash", "zsh", "fish")
SETUP = """Put one line into the file that your shell reads when it starts:
  ~/.bashrc                  source <(longspan completion bash)
  ~/.zshrc, after compinit   source <(longspan completion zsh)
  ~/.config/fish/config.fish longspan completion fish | source"""


class Option(NamedTuple):
    """An option as a shell has to know it."""

    names: list[str]
    help: str
    takes: str
    'What follows: "" (nothing), "value", "file", or words to choose from.'


class Command(NamedTuple):
    """The words that select a verb, such as `bench search`, what may follow, and its options."""

    words: str
    help: str
    follow: list[str]
    "Verbs or fixed values; empty if files follow."
    options: list[Option]


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "completion",
        help="print what lets your shell complete commands",
        examples=["source <(longspan completion bash)", "longspan completion fish | source"],
        epilog=SETUP,
    )
    verb.add_argument("shell", choices=SHELLS, help="your shell")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from longspan.cli import parser

    found = commands(parser())
    print({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](found))
    return 0


def commands(parser: argparse.ArgumentParser, words: str = "", help_: str = "") -> list[Command]:
    """The program, its verbs and theirs."""
    found, inner, follow = list[Command](), list[Command](), list[str]()
    options = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {pseudo.dest: pseudo.help or "" for pseudo in action._choices_actions}
            for name, verb in action.choices.items():
                follow.append(name)
                inner += commands(verb, f"{words} {name}".strip(), helps.get(name, ""))
        elif action.option_strings:
            options.append(Option(list(action.option_strings), _plain(action.help), _takes(action)))
        elif action.choices:
            follow += map(str, action.choices)
    found.append(Command(words, _plain(help_), follow, options))
    return found + inner


def _takes(action: argparse.Action) -> str:
    """What follows an option."""
    if action.nargs == 0:
        return ""
    if action.choices:
        return " ".join(map(str, action.choices))
    metavar = str(action.metavar or "")
    return "file" if re.search("FILE|DIR|PATH|MODEL", metavar) else "value"


def _plain(text: str | None) -> str:
    """A help text that needs no quotes in any shell."""
    return re.sub(r"[^\w ,.;()/+-]", "", (text or "").replace("%%", "%"))


def bash(found: list[Command]) -> str:
    """For bash 3.2 and later."""
    cases, values = list[str](), dict[str, str]()
    for command in found:
        flags = " ".join(name for option in command.options for name in option.names)
        cases.append(f'    "{command.words}") options="{flags}" follow="{" ".join(command.follow)}" ;;')
        values |= {name: option.takes for option in command.options if option.takes for name in option.names}
    free = "|".join(name for name, takes in values.items() if takes in ("file", "value"))
    chosen = [
        f'    {name}) COMPREPLY=($(compgen -W "{takes}" -- "$word")); return ;;'
        for name, takes in values.items()
        if takes not in ("file", "value")
    ]
    known = "|".join(f'"{command.words}"' for command in found if command.words)
    return _BASH.format(cases="\n".join(cases), chosen="\n".join(chosen), free=free, known=known)


_BASH = """_longspan() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" verb="" i options follow
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{verb:+$verb }}${{COMP_WORDS[i]}}" in
      {known}) verb="${{verb:+$verb }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  COMPREPLY=()
  case "$before" in
    {free}) return ;;
{chosen}
  esac
  case "$verb" in
{cases}
  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n "$follow" ]]; then
    COMPREPLY=($(compgen -W "$follow" -- "$word"))
  fi
}}
complete -o default -F _longspan longspan"""


def zsh(found: list[Command]) -> str:
    """For zsh, by its emulation of bash's functions."""
    return f"autoload -Uz bashcompinit && bashcompinit\n{bash(found)}"


def fish(found: list[Command]) -> str:
    """For fish 3 and later."""
    verbs = [command for command in found if command.words and " " not in command.words]
    lines = ["complete -c longspan -e"]
    for command in found:
        seen = [f"__fish_seen_subcommand_from {word}" for word in command.words.split()]
        when = "; and ".join(seen) or "__fish_use_subcommand"
        inner = [
            (other.words.split()[-1], other.help)
            for other in found
            if other.words.rpartition(" ")[0] == command.words and other is not command
        ]
        offered = inner if inner and command.words else [(name, "") for name in command.follow]
        if not command.words:
            offered = [(verb.words, verb.help) for verb in verbs]
        lines += [f"complete -c longspan -n '{when}' -f -a '{name}' -d '{text}'" for name, text in offered]
        for option in command.options:
            names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            takes = {"": "", "file": " -r -F", "value": " -x"}.get(option.takes, f" -x -a '{option.takes}'")
            lines.append(f"complete -c longspan -n '{when}' {names}{takes} -d '{option.help}'")
    return "\n".join(lines)
