"""The language server: ``soliton ride lsp``, for editors, over a pipe.

What lives here: the requests and responses of the protocol. What does not: the analysis
(``language``), and the messages themselves, which pygls reads and writes.

A text is analysed in a thread, a moment after its last change, so that typing is not delayed.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument
from pygls.workspace.position_codec import ServerTextPosition

from soliton import __version__
from soliton.ride.compiler import CompileError
from soliton.ride.compiler.directives import read_directives
from soliton.ride.formatter import format_source
from soliton.workshop.language import Analysis, Completion, Remark

PAUSE_SECONDS: Final = 0.15
MAX_LIBRARY_BYTES: Final = 1_000_000
SOURCE_NAME: Final = "soliton"
_KINDS: Final = {
    "function": lsp.CompletionItemKind.Function,
    "value": lsp.CompletionItemKind.Variable,
    "field": lsp.CompletionItemKind.Field,
    "type": lsp.CompletionItemKind.Class,
    "keyword": lsp.CompletionItemKind.Keyword,
}


class RideServer(LanguageServer):
    """The open texts of an editor, with their analyses."""

    def __init__(self) -> None:
        super().__init__("soliton-ride", __version__)
        self._analyses: dict[str, tuple[int | None, Analysis]] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def changed(self, uri: str) -> None:
        """Analyse a changed text after a pause."""
        self._cancel(uri)
        self._waiting[uri] = asyncio.get_running_loop().create_task(self._refresh(uri))

    def _cancel(self, uri: str) -> None:
        waiting = self._waiting.pop(uri, None)
        if waiting is not None:
            waiting.cancel()

    async def _refresh(self, uri: str) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        document = self.workspace.get_text_document(uri)
        version = document.version
        analysis = await asyncio.to_thread(analysed, document)
        if self.workspace.get_text_document(uri).version != version:
            return
        self._analyses[uri] = version, analysis
        remarks = [_diagnostic(document, each) for each in analysis.remarks()]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, remarks, document.version)
        )

    def closed(self, uri: str) -> None:
        """Discard the analysis of a closed text and its diagnostics."""
        self._cancel(uri)
        self._analyses.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def analysis(self, uri: str) -> tuple[TextDocument, Analysis]:
        """The analysis of the current version of a text."""
        document = self.workspace.get_text_document(uri)
        known = self._analyses.get(uri)
        if known is None or known[0] != document.version or known[1].text != document.source:
            known = document.version, analysed(document)
            self._analyses[uri] = known
        return document, known[1]


def analysed(document: TextDocument) -> Analysis:
    """Analyse a text with its imports, which are in the same directory."""
    return Analysis(document.source, _libraries(document))


def _libraries(document: TextDocument) -> dict[str, str]:
    try:
        names = read_directives(document.source).imports
    except CompileError:
        return {}
    found = {}
    directory = _path_of(document.uri).parent
    for name in names:
        try:
            path = directory / name
            if path.stat().st_size <= MAX_LIBRARY_BYTES:
                found[name] = path.read_bytes().decode()
        except (OSError, UnicodeError, ValueError):
            continue
    return found


def _path_of(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))


def _position(document: TextDocument, offset: int) -> lsp.Position:
    """An offset as a position in the client's units, with lines from 0."""
    before = document.source[:offset]
    line = before.count("\n")
    column = offset - (before.rfind("\n") + 1)
    server = ServerTextPosition(line, column)
    return document.position_to_client_units(server)


def _offset(document: TextDocument, position: lsp.Position) -> int:
    return document.offset_at_position(position)


def _range(document: TextDocument, start: int, end: int) -> lsp.Range:
    return lsp.Range(_position(document, start), _position(document, end))


def _diagnostic(document: TextDocument, remark: Remark) -> lsp.Diagnostic:
    severity = lsp.DiagnosticSeverity.Warning if remark.kind else lsp.DiagnosticSeverity.Error
    tags = [lsp.DiagnosticTag.Unnecessary] if remark.kind == "unused" else None
    return lsp.Diagnostic(
        range=_range(document, remark.start, remark.end),
        message=remark.message,
        severity=severity,
        code=remark.kind or None,
        source=SOURCE_NAME,
        tags=tags,
    )


def _item(each: Completion) -> lsp.CompletionItem:
    return lsp.CompletionItem(label=each.label, kind=_KINDS[each.kind], detail=each.detail or None)


def make_server() -> RideServer:
    """Create the server."""
    server = RideServer()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document, analysis = server.analysis(params.text_document.uri)
        text = analysis.hover(_offset(document, params.position))
        if text is None:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        document, analysis = server.analysis(params.text_document.uri)
        found = analysis.definition(_offset(document, params.position))
        if found is None:
            return None
        name, offset = found
        if not name:
            return lsp.Location(document.uri, _range(document, offset, offset))
        uri = (_path_of(document.uri).parent / name).as_uri()
        other = server.workspace.get_text_document(uri)
        return lsp.Location(uri, _range(other, offset, offset))

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "@"])
    )
    def completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        document, analysis = server.analysis(params.text_document.uri)
        found = analysis.completions(_offset(document, params.position))
        return lsp.CompletionList(is_incomplete=False, items=[_item(each) for each in found])

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        document = server.workspace.get_text_document(params.text_document.uri)
        try:
            formatted = format_source(document.source)
        except CompileError:
            return []  # the errors are diagnostics already
        if formatted == document.source:
            return []
        return [lsp.TextEdit(_range(document, 0, len(document.source)), formatted)]

    return server


def serve() -> None:
    """Serve an editor over standard input and output until it disconnects."""
    make_server().start_io()
