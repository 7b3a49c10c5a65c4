"""Whole functions on the host: tensors, control flow, arguments, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference_checks import parse
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from cim_opt.errors import UserError
from cim_opt.simulators.reference import HostEvaluator, run_function


def test_host_tensors_and_control_flow() -> None:
    module = parse("""
        func.func @twice(%x: i32) -> i32 {
          %r = arith.addi %x, %x : i32
          func.return %r : i32
        }
        func.func @f(%a: tensor<?xi32>, %n: index)
            -> (tensor<?xi32>, tensor<?xi32>, i32, tensor<4xi32>) {
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %two = arith.constant 2 : index
          %len = tensor.dim %a, %zero : tensor<?xi32>
          %out = tensor.empty(%len) : tensor<?xi32>
          %filled = scf.for %i = %zero to %len step %two iter_args(%o = %out) -> (tensor<?xi32>) {
            %part = tensor.extract_slice %a[%i] [2] [1] : tensor<?xi32> to tensor<2xi32>
            %sum = arith.addi %part, %part : tensor<2xi32>
            %next = tensor.insert_slice %sum into %o[%i] [2] [1] : tensor<2xi32> into tensor<?xi32>
            scf.yield %next : tensor<?xi32>
          }
          %odd = tensor.extract_slice %filled[1] [%n] [2] : tensor<?xi32> to tensor<?xi32>
          %both = tensor.concat dim(0) %odd, %a : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
          %x = tensor.extract %filled[%one] : tensor<?xi32>
          %y = func.call @twice(%x) : (i32) -> i32
          %c = arith.cmpi sgt, %y, %x : i32
          %z = scf.if %c -> (i32) {
            scf.yield %y : i32
          } else {
            scf.yield %x : i32
          }
          %s = tensor.splat %z : tensor<2xi32>
          %e = tensor.from_elements %x, %y, %z, %x : tensor<4xi32>
          %k = tensor.insert_slice %s into %e[2] [2] [1] : tensor<2xi32> into tensor<4xi32>
          %w = tensor.insert %y into %k[%zero] : tensor<4xi32>
          func.return %filled, %both, %z, %w : tensor<?xi32>, tensor<?xi32>, i32, tensor<4xi32>
        }""")
    a = np.array([1, 2, 3, -4], np.int32)
    filled, both, z, w = run_function(module, "f", [a, 2])
    assert filled.tolist() == [2, 4, 6, -8]
    assert both.tolist() == [4, -8, 1, 2, 3, -4]
    assert z == 8 and w.tolist() == [8, 8, 8, 8]
    assert a.tolist() == [1, 2, 3, -4]


def test_old_tensors_keep_their_values() -> None:
    """Nothing that is read later is overwritten by an insert, whoever shares its array."""
    module = parse("""
        func.func @f(%a: tensor<4xi32>)
            -> (tensor<4xi32>, tensor<4xi32>, tensor<?xi32>, tensor<4xi32>) {
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %two = arith.constant 2 : index
          %nine = arith.constant 9 : i32
          %s = tensor.splat %nine : tensor<2xi32>
          %b = tensor.insert_slice %s into %a[0] [2] [1] : tensor<2xi32> into tensor<4xi32>
          %view = tensor.cast %b : tensor<4xi32> to tensor<?xi32>
          %c = tensor.insert_slice %s into %b[2] [2] [1] : tensor<2xi32> into tensor<4xi32>
          %d = scf.for %i = %zero to %two step %one iter_args(%t = %c) -> (tensor<4xi32>) {
            %seven = arith.constant 7 : i32
            %u = tensor.insert %seven into %t[%i] : tensor<4xi32>
            scf.yield %u : tensor<4xi32>
          }
          func.return %b, %c, %view, %d : tensor<4xi32>, tensor<4xi32>, tensor<?xi32>, tensor<4xi32>
        }""")
    a = np.array([1, 2, 3, 4], np.int32)
    results = [value.tolist() for value in run_function(module, "f", [a])]
    assert results == [[9, 9, 3, 4], [9, 9, 9, 9], [9, 9, 3, 4], [7, 7, 9, 9]]
    assert a.tolist() == [1, 2, 3, 4]


def test_slices_are_written_in_place() -> None:
    """A loop that fills a big vector slice by slice does not copy it each time."""
    module = parse("""
        func.func @f(%n: index) -> tensor<?xi32> {
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %c = arith.constant dense<5> : tensor<1xi32>
          %out = tensor.empty(%n) : tensor<?xi32>
          %filled = scf.for %i = %zero to %n step %one iter_args(%o = %out) -> (tensor<?xi32>) {
            %next = tensor.insert_slice %c into %o[%i] [1] [1] : tensor<1xi32> into tensor<?xi32>
            scf.yield %next : tensor<?xi32>
          }
          func.return %filled : tensor<?xi32>
        }""")
    seen = set[int]()

    class Watching(HostEvaluator):
        def account(self, op: Any, args: Any, results: Any) -> None:
            if op.name in ("tensor.insert_slice", "tensor.empty"):
                seen.add(results[0].ctypes.data)

    (result,) = Watching(module).call("f", [np.int64(50)])
    assert result.tolist() == [5] * 50
    assert len(seen) == 1


def test_results_are_not_the_arguments() -> None:
    module = parse(
        "func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> { func.return %a : tensor<2xi32> }"
    )
    a = np.array([1, 2], np.int32)
    (result,) = run_function(module, "f", [a])
    result[0] = 7
    assert a.tolist() == [1, 2]


IDENTITY = """
    func.func @f(%a: tensor<?xi32>, %b: tensor<4xi32>, %c: i8) -> i8 {
      func.return %c : i8
    }"""
A, B = np.zeros(3, np.int32), np.zeros(4, np.int32)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([A, B], "function 'f' got 2 arguments; it takes 3"),
        ([A, B.astype(np.int64), 1], "argument %b has elements of type int64"),
        ([A, A, 1], "argument %b has shape \\(3,\\); its type is tensor<4xi32>"),
        ([A.reshape(1, 3), B, 1], "argument %a has shape \\(1, 3\\)"),
        ([A, [0, 0, 0, 0], 1], "argument %b is a list"),
        ([A, B, 200], "argument %c is 200; its type is i8"),
        ([A, B, 0.5], "argument %c is 0.5"),
    ],
)
def test_arguments_that_do_not_fit(args: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run_function(parse(IDENTITY), "f", args)


def test_scalar_arguments() -> None:
    module = parse(IDENTITY)
    assert run_function(module, "f", [A, B, -5]) == [np.int8(-5)]
    assert run_function(module, "f", [A, B, np.int8(7)])[0].dtype == np.int8


def test_missing_function() -> None:
    with pytest.raises(UserError, match="there is no function 'g'; the module has f"):
        run_function(parse(IDENTITY), "g", [])


PATTERN_ERRORS = {
    "inputs of 'pattern.map' have 3 and 4 elements": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
          %r = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
            pattern.yield %y : i32
          }
          func.return %r : tensor<?xi32>
        }""",
    "group size 2 of 'pattern.group' does not divide the length, 3;.*pad the input to 4": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
          %r = pattern.group<2>(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
            %i = arith.constant 0 : index
            %e = tensor.extract %x[%i] : tensor<2xi32>
            pattern.yield %e : i32
          }
          func.return %r : tensor<?xi32>
        }""",
    "index 4 of 'tensor.extract' is out of range; the tensor has 4 elements": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
          %r = pattern.group<4>(%g in %b : tensor<?xi32>) -> tensor<?xi32> {
            %i = arith.constant 4 : index
            %y = tensor.extract %g[%i] : tensor<4xi32>
            pattern.yield %y : i32
          }
          func.return %r : tensor<?xi32>
        }""",
    "index -1 of 'tensor.insert' is out of range; the tensor has 3 elements": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
          %r = pattern.map(%y in %b : tensor<?xi32>) -> tensor<?xi32> {
            %c = arith.constant 1 : i32
            %o = arith.constant 0 : index
            %t = tensor.splat %c : tensor<3xi32>
            %z = arith.subi %y, %c : i32
            %i = arith.index_cast %z : i32 to index
            %u = tensor.insert %c into %t[%i] : tensor<3xi32>
            %e = tensor.extract %u[%o] : tensor<3xi32>
            pattern.yield %e : i32
          }
          func.return %r : tensor<?xi32>
        }""",
    "step of 'scf.for' is not positive": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
          %r = pattern.map(%y in %b : tensor<?xi32>) -> tensor<?xi32> {
            %o = arith.constant 0 : index
            %n = arith.constant 3 : index
            %s = scf.for %i = %o to %n step %o iter_args(%acc = %y) -> (i32) {
              scf.yield %acc : i32
            }
            pattern.yield %s : i32
          }
          func.return %r : tensor<?xi32>
        }""",
    "'tensor.extract_slice' of 4 elements from 0 with stride 1 is out of range": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<4xi32> {
          %r = tensor.extract_slice %a[0] [4] [1] : tensor<?xi32> to tensor<4xi32>
          func.return %r : tensor<4xi32>
        }""",
    "'tensor.cast' gets a tensor of length 3; its type says 4": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<4xi32> {
          %r = tensor.cast %a : tensor<?xi32> to tensor<4xi32>
          func.return %r : tensor<4xi32>
        }""",
    "'memref.alloc' cannot be run on the host": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
          %r = memref.alloc() : memref<4xi32>
          func.return %a : tensor<?xi32>
        }""",
}


@pytest.mark.parametrize("message", PATTERN_ERRORS)
def test_errors_of_a_program(message: str) -> None:
    with pytest.raises(UserError, match=message):
        run_function(parse(PATTERN_ERRORS[message]), "f", [A, B])


def test_errors_name_the_place() -> None:
    module = parse(PATTERN_ERRORS["'memref.alloc' cannot be run on the host"])
    op = next(op for op in module.walk() if op.name == "memref.alloc")
    op.location = FileLineColLoc(StringAttr("a.mlir"), IntAttr(3), IntAttr(16))
    with pytest.raises(UserError) as caught:
        run_function(module, "f", [A, B])
    assert str(caught.value).startswith("a.mlir:3:16: error: 'memref.alloc' cannot be run")
