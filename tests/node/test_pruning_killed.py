"""Killing a program that prunes at random moments loses nothing that its mode keeps.

``SOLITON_KILLS`` sets how many kills there are (a few by default; 200 by hand).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from soliton.node.pruning import prune_all
from soliton.node.verify import verify
from soliton.storage import keeping, layout
from tests.amounts import times
from tests.node.chains import open_chain
from tests.node.test_modes import HEIGHT, SHORT, grow, keep

KILLS = int(os.environ.get("SOLITON_KILLS", times(4, 50)))
PROGRAM = """
import sys
from pathlib import Path
from soliton.storage import keeping, pruning
from soliton.storage.store import Store
keeping.GENERATING_BLOCKS, keeping.LEAST_BLOCKS = 50, 55
pruning.STEP_BLOCKS = 1
wanted = keeping.Keeping("pruned", blocks=60, rollback_depth=20)
store = Store(Path(sys.argv[1]), "short", keeping=wanted)
while store.prune():
    print("step", flush=True)
"""


def test_a_killed_program_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "GENERATING_BLOCKS", 50)
    monkeypatch.setattr(keeping, "LEAST_BLOCKS", 55)
    archive = open_chain(tmp_path / "archive", SHORT)
    while archive.height < HEIGHT:
        grow(archive)
    ids = [archive.meta(height).id for height in range(1, HEIGHT + 1)]
    archive.store.close()
    shutil.copytree(tmp_path / "archive", tmp_path / "other")
    other = open_chain(tmp_path / "other", SHORT, keeping=keep("pruned"))
    prune_all(other.store)
    expected = dict(other.store.scan(b"", b""))
    other.store.close()
    moments = random.Random(20261128)
    kills = 0
    while kills < KILLS:
        directory = tmp_path / f"killed-{kills}"
        shutil.copytree(tmp_path / "archive", directory)
        while kills < KILLS:
            until = moments.randrange(1, 60)
            command = [sys.executable, "-c", PROGRAM, str(directory)]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
                assert program.stdout
                while until and program.stdout.readline():
                    until -= 1
                if until:
                    # It has come to its end.
                    assert program.wait() == 0
                    break
                program.send_signal(signal.SIGKILL)
            kills += 1
            # Whoever reads it in between finds a store in order.
            chain = open_chain(directory, SHORT, keeping=keep(None))
            assert verify(chain).blocks == HEIGHT
            assert [chain.meta(height).id for height in range(1, HEIGHT + 1)] == ids
            chain.store.close()
        chain = open_chain(directory, SHORT, keeping=keep(None))
        prune_all(chain.store)
        found = dict(chain.store.scan(b"", b""))
        assert found.keys() == expected.keys()
        assert all(found[key] == value for key, value in expected.items() if key[:1] != layout.UNDO)
        chain.store.close()
        shutil.rmtree(directory)
