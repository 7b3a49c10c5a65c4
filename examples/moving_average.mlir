// Moving average over 11 elements, in whole numbers (division rounds towards 0).
// Eleven years are about one solar cycle: with the sunspot numbers of examples/sunspots.csv, in
// tenths, the cycle averages out and the slow change between centuries is left.
//
//   python examples/sunspots.py sunspots.npy
//   cim-run examples/moving_average.mlir --target upmem --input series=sunspots.npy
//
// or on random numbers:
//
//   cim-run examples/moving_average.mlir --target upmem --size 1000003

func.func @moving_average(%series: tensor<?xi32>) -> tensor<?xi32> {
  %averages = pattern.window<11>(%years in %series : tensor<?xi32>) -> tensor<?xi32> {
    %zero = arith.constant 0 : i32
    %length = arith.constant 11 : i32
    %sum = pattern.reduce(%x in %years : tensor<11xi32>) init(%acc = %zero : i32) {
      %s = arith.addi %acc, %x : i32
      pattern.yield %s : i32
    }
    %average = arith.divsi %sum, %length : i32
    pattern.yield %average : i32
  }
  func.return %averages : tensor<?xi32>
}
