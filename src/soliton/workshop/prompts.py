"""Interactive input with history and completion.

What lives here: the settings of the line editor (prompt_toolkit). What does not: the meaning of
lines (``debugger``, ``repl``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

HISTORY_DIRECTORY: Final = Path("~/.soliton/history")


def session(
    name: str,
    words: Callable[[], Sequence[str]],
    is_whole: Callable[[str], bool] | None = None,
) -> PromptSession[str]:
    """A line editor with a history file of its own; ``words`` are the completions. Input continues
    on another line until ``is_whole`` returns true.
    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.completion import Completer, WordCompleter
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory

    history: History = InMemoryHistory()
    directory = HISTORY_DIRECTORY.expanduser()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        history = FileHistory(str(directory / name))
    except OSError:
        pass  # without a file, the history lasts for the session

    @Condition
    def is_incomplete() -> bool:
        return is_whole is not None and not is_whole(get_app().current_buffer.text)

    completer: Completer = WordCompleter(lambda: list(words()))
    return PromptSession(
        history=history,
        completer=completer,
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        multiline=is_incomplete,
    )


def typed_lines(
    prompt: str,
    name: str,
    words: Callable[[], Sequence[str]],
    is_whole: Callable[[str], bool] | None = None,
) -> Iterator[str]:
    """Yield inputs of one or more lines until Ctrl-D; Ctrl-C discards the current one."""
    editor = session(name, words, is_whole)
    while True:
        try:
            yield editor.prompt(prompt)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
