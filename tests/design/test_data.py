"""Files of designs: what is read, what is refused, and designs as vectors."""

from pathlib import Path

import numpy as np
import pytest

from longstride.core.errors import RunError
from longstride.design.data import DesignPool, encoding_of, read, write

RNG = np.random.default_rng(0)


def test_numbers_are_standardised_and_come_back_and_what_never_varies_stays(tmp_path: Path) -> None:
    designs = np.column_stack([RNG.normal(3, 2, 50), np.full(50, 7.0), RNG.normal(0, 1e-3, 50)])
    encoding = encoding_of(designs, designs, inside=True)
    vectors = encoding.encode(designs)
    assert np.allclose(vectors[:, [0, 2]].mean(0), 0, atol=1e-5) and np.allclose(
        vectors[:, [0, 2]].std(0), 1, atol=1e-5
    )
    assert np.allclose(encoding.decode(vectors), designs, atol=1e-5)
    far = encoding.decode(np.full((1, 3), 99.0))[0]
    assert far.tolist() == [designs[:, 0].max(), 7.0, designs[:, 2].max()]
    assert encoding_of(designs, designs, inside=False).decode(np.full((1, 3), 99.0))[0, 0] > 100


def test_choices_are_the_largest_of_a_place_and_those_of_the_whole_file_are_known() -> None:
    known = np.array([list("AC"), list("GC"), list("AT")])
    encoding = encoding_of(known[:2], known, inside=False)
    assert encoding.size == 4
    assert (encoding.decode(encoding.encode(known)) == known).all()
    vector = encoding.encode(known[:1])
    vector[0, 3] += 9  # T at the second place
    assert encoding.decode(vector).tolist() == [["A", "T"]]


def test_a_npz_of_whole_numbers_is_of_choices(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([[0, 3], [1, 3], [2, 5]]), y=np.array([[1.0], [2], [3]]))
    pool = read(str(tmp_path / "a.npz"), "score")
    assert pool.scores.tolist() == [1, 2, 3] and encoding_of(pool.designs, pool.designs, False).size == 5


@pytest.mark.parametrize(
    ("text", "designs"),
    [
        ("a,score,b\n1,0.5,2\n3,0.7,4\n", [[1.0, 2.0], [3.0, 4.0]]),
        ("score,a,b\n0.5,red,1\n0.7,blue,1\n", [["red", "1"], ["blue", "1"]]),
        ("dna,score\nACG,0.5\nTCG,0.7\n", [["A", "C", "G"], ["T", "C", "G"]]),
    ],
)
def test_a_csv_is_written_in_the_form_that_it_was_read_in(
    text: str, designs: list[list[object]], tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text(text)
    pool = read(str(tmp_path / "mine.csv"), "score")
    assert pool.designs.tolist() == designs and pool.scores.tolist() == [0.5, 0.7]
    path = write(
        tmp_path / "found", DesignPool(pool.designs, pool.scores, pool.columns, pool.sequence), {"true": pool.scores}
    )
    again = read(str(path), "true")
    assert path.name == "found.csv" and again.designs.tolist() == designs and again.scores.tolist() == [0.5, 0.7]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n", "no column 'score'; its columns are a, b: name it by tasks.column"),
        ("a,score\n1,2\n3\n", "line 3: expected 2 cells"),
        ("a,score\n1,2\n3,x\n", "line 3: score is no number: 'x'"),
        ("a,b,score\n1,1,2\noh,1,3\n", "line 3: a is no number, and it is one in other lines"),
        ("a,b,score\n1.5,oh,2\n2.5,no,3\n", "a holds numbers, and other columns hold words"),
        ("a,score\n1,2\n3,2\n", "all of one score"),
        ("a,score\n1,nan\n3,2\n", "not finite"),
    ],
)
def test_a_csv_that_does_not_fit_is_refused_by_its_line(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(RunError, match=says):
        read(str(tmp_path / "mine.csv"), "score")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no file"):
        read(str(tmp_path / "no.npz"), "score")
    with pytest.raises(RunError, match="no form that is known"):
        read(str(tmp_path / "no.txt"), "score")
    (tmp_path / "torn.npz").write_bytes(b"PK\3\4")
    with pytest.raises(RunError, match="is damaged"):
        read(str(tmp_path / "torn.npz"), "score")
    np.savez_compressed(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(9, 2)), y=np.arange(9))
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content[:55] + b"\xff" * 9 + content[64:])  # which zlib refuses
    with pytest.raises(RunError, match="is damaged"):
        read(str(tmp_path / "a.npz"), "score")
    np.savez(tmp_path / "b.npz", x=np.zeros((3, 2)), z=np.zeros(3))
    with pytest.raises(RunError, match=r"lacks x \(or designs\) or y \(or scores\); found x, z"):
        read(str(tmp_path / "b.npz"), "score")
