"""The language server with a client of its own library, as a process at the other end of pipes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from tests.e2e.programs import PROGRAM, WAIT_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

LIBRARY = "{-# CONTENT_TYPE LIBRARY #-}\n\nfunc half (n: Int) =\n  n / 2\n"
SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# IMPORT lib.ride #-}

let words = "ä😀"

func price(amount: Int) = half(amount) + size(words)

@Callable(i)
func buy(amount: Int) = {
  let paid = price(amount)
  [ScriptTransfer(i.caller, paid, unit)]
}
"""
WRONG = SOURCE.replace("price(amount)\n", "pric(amount)\n").replace("i.caller", "i.callr")


class Editor:
    """A client with one open text."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.file = uri.rsplit("/", 1)[-1]
        self.text = ""
        self.version = 0
        self.told: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

    def open(self, text: str) -> None:
        self.text = text
        item = lsp.TextDocumentItem(self.uri, "ride", 0, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def change(self, text: str) -> None:
        self.text = text
        self.version += 1
        whole = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.version, self.uri), [whole]
            )
        )

    def position(self, part: str, behind: int = 0) -> lsp.Position:
        """Where a part of the text begins, in UTF-16 as editors count."""
        offset = self.text.index(part) + behind
        line = self.text.count("\n", 0, offset)
        start = self.text.rfind("\n", 0, offset) + 1
        units = len(self.text[start:offset].encode("utf-16-le")) // 2
        return lsp.Position(line, units)

    @property
    def document(self) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri)

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                told = await self.told.get()
                if told.version == self.version:
                    return list(told.diagnostics)

    async def hover(self, part: str, behind: int = 0) -> str:
        found = await self.client.text_document_hover_async(
            lsp.HoverParams(self.document, self.position(part, behind))
        )
        if found is None:
            return ""
        assert isinstance(found.contents, lsp.MarkupContent)
        return found.contents.value

    async def definition(self, part: str, behind: int = 0) -> tuple[str, int, int] | None:
        found = await self.client.text_document_definition_async(
            lsp.DefinitionParams(self.document, self.position(part, behind))
        )
        if found is None:
            return None
        assert isinstance(found, lsp.Location)
        start = found.range.start
        return found.uri.rsplit("/", 1)[-1], start.line, start.character

    async def labels(self, part: str, behind: int = 0) -> set[str]:
        found = await self.client.text_document_completion_async(
            lsp.CompletionParams(self.document, self.position(part, behind))
        )
        assert isinstance(found, lsp.CompletionList)
        return {each.label for each in found.items}


class Server:
    """A running language server and its client, with an editor for each text."""

    def __init__(self, client: LanguageClient, directory: Path) -> None:
        self.client, self._directory = client, directory
        self._editors: dict[str, Editor] = {}
        (directory / "lib.ride").write_text(LIBRARY)

        def published(params: lsp.PublishDiagnosticsParams) -> None:
            self._editors[params.uri].told.put_nowait(params)

        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)

    def editor(self) -> Editor:
        """One with a text of its own."""
        made = Editor(self.client, (self._directory / f"shop{len(self._editors)}.ride").as_uri())
        self._editors[made.uri] = made
        return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    directory = tmp_path_factory.mktemp("texts")
    client = LanguageClient("editor", "1")
    made = Server(client, directory)
    await client.start_io(str(PROGRAM), "ride", "lsp")
    async with asyncio.timeout(WAIT_SECONDS):
        await client.initialize_async(
            lsp.InitializeParams(lsp.ClientCapabilities(), root_uri=directory.as_uri())
        )
    client.initialized(lsp.InitializedParams())
    yield made
    async with asyncio.timeout(WAIT_SECONDS):
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]


@pytest.fixture
def editor(server: Server) -> Editor:
    return server.editor()


async def test_faults_come_and_go(editor: Editor) -> None:
    editor.open(WRONG)
    found = await editor.diagnostics()
    assert [(each.range.start, each.severity) for each in found] == [
        (editor.position("pric(amount)\n"), lsp.DiagnosticSeverity.Error),
        (editor.position("i.callr"), lsp.DiagnosticSeverity.Error),
    ]
    assert "did you mean price?" in found[0].message
    editor.change(SOURCE)
    assert await editor.diagnostics() == []
    editor.change(SOURCE.replace("  let paid", "  let spare = 1\n  let paid"))
    (warning,) = await editor.diagnostics()
    assert warning.severity == lsp.DiagnosticSeverity.Warning and warning.code == "unused"
    assert warning.range.start == editor.position("spare")


async def test_hover_tells_types_and_costs(editor: Editor) -> None:
    editor.open(SOURCE)
    assert "func price (amount: Int): Int" in await editor.hover("price(amount)\n")
    assert "complexity 3" in await editor.hover("price(amount)\n")
    assert "let words: String" in await editor.hover("words)")
    assert "amount: Int" in await editor.hover("amount) +")
    library = await editor.hover("size(")
    assert "size(String): Int" in library and "complexity 1" in library
    assert "caller: Address" in await editor.hover("caller")
    assert "ScriptTransfer(" in await editor.hover("ScriptTransfer")
    assert await editor.hover('"ä') == ""


async def test_definitions_here_and_in_a_library(editor: Editor) -> None:
    editor.open(SOURCE)
    assert await editor.definition("price(amount)\n") == (editor.file, 7, 5)
    assert await editor.definition("words)") == (editor.file, 5, 4)
    assert await editor.definition("amount) +") == (editor.file, 7, 11)
    assert await editor.definition("half(amount)", 2) == ("lib.ride", 2, 5)
    assert await editor.definition("size(") is None


async def test_what_may_follow(editor: Editor) -> None:
    editor.open(SOURCE)
    labels = await editor.labels("price(amount)\n")
    assert {"price", "half", "words", "amount", "getInteger", "match", "ScriptTransfer"} <= labels
    editor.change(SOURCE.replace("i.caller", "i."))
    fields = await editor.labels("i., paid", 2)
    assert {"caller", "payments", "transactionId"} <= fields
    assert "price" not in fields


async def test_formatting(editor: Editor) -> None:
    untidy = SOURCE.replace("let words = ", "let words=") + "\n\n\n"
    editor.open(untidy)
    edits = await editor.client.text_document_formatting_async(
        lsp.DocumentFormattingParams(editor.document, lsp.FormattingOptions(2, True))
    )
    assert edits is not None
    (edit,) = edits
    assert edit.new_text == SOURCE
    assert edit.range.start == lsp.Position(0, 0)
    assert edit.range.end == lsp.Position(untidy.count("\n"), 0)
    editor.change("let a = (")
    assert not await editor.client.text_document_formatting_async(
        lsp.DocumentFormattingParams(editor.document, lsp.FormattingOptions(2, True))
    )


async def test_texts_that_are_none_of_the_language_do_no_harm(editor: Editor) -> None:
    for text in ("", "\x00", "{-# STDLIB_VERSION 99 #-}", "((((" * 2_000, "é😀" * 10, "let a ="):
        editor.open(text) if not editor.text else editor.change(text)
        assert isinstance(await editor.diagnostics(), list)
        if text:
            await editor.hover(text[0])
            await editor.labels(text[-1], 1)
