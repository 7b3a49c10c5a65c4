// Extremes of a time series: its lowest and its highest value, in one pass.
//
//   python examples/sunspots.py sunspots.npy
//   cim-run examples/extreme.mlir --target upmem --input series=sunspots.npy
//
// or on random numbers:
//
//   cim-run examples/extreme.mlir --target upmem --size 1000003

func.func @extreme(%series: tensor<?xi32>) -> (i32, i32) {
  %most = arith.constant 2147483647 : i32
  %least = arith.constant -2147483648 : i32
  %lowest, %highest = pattern.reduce(%x in %series : tensor<?xi32>, %y in %series : tensor<?xi32>)
      init(%low = %most : i32, %high = %least : i32) {
    %l = arith.minsi %low, %x : i32
    %h = arith.maxsi %high, %y : i32
    pattern.yield %l, %h : i32, i32
  }
  func.return %lowest, %highest : i32, i32
}
