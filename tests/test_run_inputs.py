"""The inputs of a run: sizes, files, random values, and every refusal."""

from pathlib import Path

import numpy as np
import pytest

from cim_opt.errors import UserError
from cim_opt.tools.load_module import find_entry, parse_text
from cim_opt.tools.run_inputs import Sizes, Values, make_inputs, parse_inputs, parse_sizes

PROGRAM = """
func.func @f(%a: tensor<?xi32>, %b: tensor<?xf32>, %c: tensor<4xi8>, %k: i64, %p: i1) {
  func.return
}
"""
A_AND_B = {"a": 5, "b": 7}


def inputs(
    sizes: Sizes, files: dict[str, str] | None = None, seed: int = 0, text: str = PROGRAM
) -> dict[str, Values]:
    return make_inputs(find_entry(parse_text(text, "t.mlir"), None), sizes, files or {}, seed)


def saved(folder: Path, array: Values) -> str:
    path = folder / "x.npy"
    np.save(path, array)
    return str(path)


def refusal(*arguments: object) -> str:
    with pytest.raises(UserError) as caught:
        inputs(*arguments)  # pyright: ignore[reportArgumentType]
    message = caught.value.message()
    assert message.count("; ") >= 1, "what; limit; remedy"
    assert "\n" not in message
    return message


# What works.


def test_one_size_binds_every_free_length() -> None:
    made = inputs(Sizes(6))
    assert [value.shape for value in made.values()] == [(6,), (6,), (4,), (), ()]
    assert [str(v.dtype) for v in made.values()] == ["int32", "float32", "int8", "int64", "bool"]


def test_a_size_of_one_argument_goes_before_the_common_one() -> None:
    made = inputs(Sizes(6, {"b": 2}))
    assert (made["a"].size, made["b"].size) == (6, 2)


def test_length_zero() -> None:
    assert inputs(Sizes(0))["a"].shape == (0,)


def test_the_seed_decides_and_each_argument_has_its_own_numbers() -> None:
    one, same, other = inputs(Sizes(99)), inputs(Sizes(99)), inputs(Sizes(99), seed=1)
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not np.array_equal(one["a"], other["a"])
    text = "func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) {\n func.return\n}"
    two = inputs(Sizes(99), text=text)
    assert not np.array_equal(two["a"], two["b"])


def test_a_given_argument_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    path = saved(tmp_path, np.zeros(5, np.int32))
    given = inputs(Sizes(None, {"b": 7}), {"a": path})
    assert np.array_equal(given["a"], np.zeros(5))
    assert np.array_equal(given["b"], inputs(Sizes(None, A_AND_B))["b"])


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integers_come_from_the_whole_range(width: int) -> None:
    text = f"func.func @f(%a: tensor<?xi{width}>) {{\n func.return\n}}"
    values = inputs(Sizes(100_000), text=text)["a"]
    limits = np.iinfo(values.dtype)
    span = (limits.max - limits.min) / 256
    assert float(values.min()) <= limits.min + span
    assert float(values.max()) >= limits.max - span
    if width == 8:
        assert np.unique(values).size == 256


def test_bits_are_both_and_floats_are_finite_of_both_signs() -> None:
    text = "func.func @f(%a: tensor<?xi1>, %b: tensor<?xf32>) {\n func.return\n}"
    made = inputs(Sizes(1000), text=text)
    assert 400 < int(made["a"].sum()) < 600
    assert np.isfinite(made["b"]).all()
    assert 0.9 < float(made["b"].std()) < 1.1
    assert abs(float(made["b"].mean())) < 0.2


def test_unsigned_files_are_the_same_bits(tmp_path: Path) -> None:
    path = saved(tmp_path, np.array([0, 127, 128, 255], np.uint8))
    assert inputs(Sizes(1), {"c": path})["c"].tolist() == [0, 127, -128, -1]


def test_files_of_the_other_byte_order(tmp_path: Path) -> None:
    path = saved(tmp_path, np.array([1, -2, 3], ">i4"))
    made = inputs(Sizes(None, {"b": 1}), {"a": path})["a"]
    assert made.dtype == np.dtype("=i4")
    assert made.tolist() == [1, -2, 3]


def test_files_in_fortran_order(tmp_path: Path) -> None:
    text = "func.func @f(%m: tensor<2x3xi32>) {\n func.return\n}"
    array = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    made = inputs(Sizes(), {"m": saved(tmp_path, array)}, text=text)["m"]
    assert np.array_equal(made, array)
    assert made.flags.c_contiguous


def test_scalars_from_files(tmp_path: Path) -> None:
    made = inputs(Sizes(1), {"k": saved(tmp_path, np.array(-5, np.int64))})
    assert made["k"].shape == ()
    assert made["k"].item() == -5


def test_arguments_without_a_name_go_by_position() -> None:
    text = "func.func @f(%0: tensor<?xi32>, %1: tensor<?xi32>) {\n func.return\n}"
    made = inputs(parse_sizes(["0=3", "%1=4"]), text=text)
    assert [value.size for value in made.values()] == [3, 4]


def test_option_texts() -> None:
    assert parse_sizes([]) == Sizes()
    assert parse_sizes(["8", "a=0", "%b=2"]) == Sizes(8, {"a": 0, "b": 2})
    assert parse_sizes(["8", "8"]) == Sizes(8)
    assert parse_inputs(["a=x=y.npy", "%b=z.npy"]) == {"a": "x=y.npy", "b": "z.npy"}


# Refusals.


@pytest.mark.parametrize("text", ["", "x", "=3", "a=", "a=x", "1.5", "a=b=3.0"])
def test_a_size_that_is_none_is_bad_usage(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_sizes([text])


@pytest.mark.parametrize("text", ["", "a", "=x.npy", "a="])
def test_an_input_that_is_none_is_bad_usage(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_inputs([text])


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (["-1"], "--size -1; a length is 0 or more"),
        (["a=-7"], "--size a=-7; a length is 0 or more"),
        (["3", "4"], "--size 4 after 3; an argument has one length"),
        (["a=3", "%a=4"], "--size %a=4 after %a=3; an argument has one length"),
    ],
)
def test_sizes_that_cannot_be(texts: list[str], what: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_sizes(texts)
    assert caught.value.message().startswith(what)


def test_two_inputs_for_one_argument() -> None:
    with pytest.raises(UserError, match="--input a twice"):
        parse_inputs(["a=x.npy", "%a=y.npy"])


def test_a_missing_length() -> None:
    assert refusal(Sizes()) == (
        "%a is tensor<?xi32> and has no length; every `?` needs one; "
        "add --size K, --size a=K or --input a=FILE.npy"
    )
    assert refusal(Sizes(None, {"a": 1})).startswith("%b is tensor<?xf32> and has no length")


def test_unknown_names() -> None:
    takes = "the entry takes %a, %b, %c, %k, %p"
    assert refusal(Sizes(1, {"z": 2})).startswith(f"--size: no argument %z; {takes}")
    assert refusal(Sizes(1), {"z": "x.npy"}).startswith(f"--input: no argument %z; {takes}")
    none = "func.func @f() {\n func.return\n}"
    assert "the entry takes none" in refusal(Sizes(None, {"z": 2}), {}, 0, none)


def test_a_size_for_what_has_none() -> None:
    assert refusal(Sizes(1, {"c": 4})).startswith("--size c=4; %c is tensor<4xi8>, which has no")
    assert refusal(Sizes(1, {"k": 4})).startswith("--size k=4; %k is i64, which has no")
    static = "func.func @f(%c: tensor<4xi8>) {\n func.return\n}"
    assert refusal(Sizes(4), {}, 0, static).startswith("--size 4; no argument of @f has a `?`")


def test_a_size_and_a_file_that_contradict(tmp_path: Path) -> None:
    path = saved(tmp_path, np.zeros(5, np.int32))
    assert inputs(Sizes(5), {"a": path})["a"].size == 5
    expected = "--size 6 and --input a contradict each other; the file has shape (5,)"
    assert refusal(Sizes(6), {"a": path}).startswith(expected)
    assert refusal(Sizes(5, {"a": 6}), {"a": path}).startswith(expected)


def test_files_of_another_type(tmp_path: Path) -> None:
    path = saved(tmp_path, np.zeros(5))
    assert refusal(Sizes(5), {"a": path}) == (
        f"--input a: {path} holds float64; %a is tensor<?xi32>, which takes int32; "
        "convert it with astype"
    )


@pytest.mark.parametrize("shape", [(), (2, 2), (5,)])
def test_files_of_another_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = saved(tmp_path, np.zeros(shape, np.int8))
    message = refusal(Sizes(5), {"c": path})
    assert message.startswith(f"--input c: {path} has shape {shape}; %c is tensor<4xi8>")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "none.npy")
    expected = f"--input a: cannot read {path}; No such file or directory; check the path"
    assert refusal(Sizes(5), {"a": path}) == expected


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x09\x00xx"])
def test_files_that_are_no_arrays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    assert f"--input a: {path} is not a .npy file of numbers" in refusal(Sizes(5), {"a": str(path)})


def test_files_cut_short(tmp_path: Path) -> None:
    path = Path(saved(tmp_path, np.zeros(500, np.int32)))
    path.write_bytes(path.read_bytes()[:-100])
    assert "is not a .npy file of numbers" in refusal(Sizes(500), {"a": str(path)})


def test_files_of_python_objects(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([{}, []], dtype=object), allow_pickle=True)
    assert "is not a .npy file of numbers" in refusal(Sizes(2), {"a": str(path)})


def test_more_than_the_memory() -> None:
    message = refusal(Sizes(10**15))
    assert message.startswith("the inputs need 8000000000000013 bytes; this computer has")


def test_arguments_that_are_no_numbers() -> None:
    text = "func.func @f(%m: memref<4xi32>) {\n func.return\n}"
    assert refusal(Sizes(), {}, 0, text).startswith("%m is memref<4xi32>; inputs are numbers")
