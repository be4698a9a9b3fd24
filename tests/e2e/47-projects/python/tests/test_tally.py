import sqlite3
import subprocess
import sys

import tally


def test_words():
    assert tally.words(" a b\nc ") == 3


def test_files_in_processes(tmp_path):
    for i in range(4):
        (tmp_path / str(i)).write_text("one two", encoding="utf-8")
    assert tally.words_of(tmp_path.iterdir()) == 8


def test_command_line(tmp_path):
    (tmp_path / "f").write_text("one two three", encoding="utf-8")
    out = subprocess.run([sys.executable, "-m", "tally", tmp_path / "f"], check=True, text=True,
                         capture_output=True, env={"PYTHONPATH": "src"})
    assert out.stdout == "3\n"


def test_database(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as db:
        db.execute("create table t (n integer)")
        db.executemany("insert into t values (?)", [(i,) for i in range(100)])
        assert db.execute("select sum(n) from t").fetchone() == (4950,)
