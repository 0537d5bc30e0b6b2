"""Lines that a person types, with history and completion.

What lives here: the line editor's settings (prompt_toolkit does the editing). What does not: what
the lines mean (``debugger``, ``repl``).
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
    """A line editor with a history of its own, on the disk; ``words`` are completed. With
    ``is_whole`` a text that is not whole goes on in another line.
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
        pass  # it is then forgotten at the end

    @Condition
    def goes_on() -> bool:
        return is_whole is not None and not is_whole(get_app().current_buffer.text)

    completer: Completer = WordCompleter(lambda: list(words()))
    return PromptSession(
        history=history,
        completer=completer,
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        multiline=goes_on,
    )


def typed_lines(
    prompt: str,
    name: str,
    words: Callable[[], Sequence[str]],
    is_whole: Callable[[str], bool] | None = None,
) -> Iterator[str]:
    """What is typed until Ctrl-D, a line or several; Ctrl-C begins it anew."""
    editor = session(name, words, is_whole)
    while True:
        try:
            yield editor.prompt(prompt)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
