// Histogram of a grey-scale picture: how many pixels have each of the 256 values of a byte.
// The accumulator is a tensor of 256 bins; `combine` adds two of them, bin by bin.
//
//   cim-run examples/histogram.mlir --target upmem --size 262144
//
// or of a real picture of 512 x 512 pixels (needs `pip install -e '.[examples]'`):
//
//   python examples/camera.py camera.npy
//   cim-run examples/histogram.mlir --target upmem --input img=camera.npy

func.func @histogram(%img: tensor<?xi8>) -> tensor<256xi32> {
  %zeros = arith.constant dense<0> : tensor<256xi32>
  %hist = pattern.reduce(%pixel in %img : tensor<?xi8>) init(%bins = %zeros : tensor<256xi32>) {
    %one = arith.constant 1 : i32
    %value = arith.extui %pixel : i8 to i32
    %bin = arith.index_cast %value : i32 to index
    %old = tensor.extract %bins[%bin] : tensor<256xi32>
    %new = arith.addi %old, %one : i32
    %next = tensor.insert %new into %bins[%bin] : tensor<256xi32>
    pattern.yield %next : tensor<256xi32>
  } combine(%l, %r) {
    %s = arith.addi %l, %r : i32
    pattern.yield %s : i32
  }
  func.return %hist : tensor<256xi32>
}
