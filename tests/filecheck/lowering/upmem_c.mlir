// RUN: cim-opt %s -t upmem-c | filecheck %s

// CHECK: // ----- cim_dpu.h
// CHECK: // ----- scale.c
// CHECK: /* Kernel @scale: build it with -DNR_TASKLETS=2. */
// CHECK: BARRIER_INIT(meet, NR_TASKLETS);
// CHECK: __host struct { uint32_t a0; uint16_t a1; } scale_args;
// CHECK: static __dma_aligned uint16_t w0[NR_TASKLETS][8];
// CHECK: static __dma_aligned uint32_t w1[2];
// CHECK: int main(void) {
// CHECK: mram_read(MRAM(64u + 2u * scale_args.a0), &w0[tasklet][0u], 2u * 8u);
// CHECK: for (uint32_t [[I:v[0-9]+]] = 0u; s32([[I]]) < s32(8u); [[I]] += 1u) {
// CHECK: const uint16_t [[X:v[0-9]+]] = (uint16_t)(w0[tasklet][[[I]]]);
// CHECK: const uint16_t [[Y:v[0-9]+]] = (uint16_t)((uint32_t)[[X]] * (uint32_t)scale_args.a1);
// CHECK: w0[tasklet][[[I]]] = [[Y]];
// CHECK: barrier_wait(&meet);
// CHECK: mutex_pool_lock(&mutexes, 0u);
// CHECK: mutex_pool_unlock(&mutexes, 0u);
// CHECK: return 0;
upmem.kernel @scale tasklets 2 (%at: index, %k: i16) {
  %a = upmem.mram 64 : memref<16xi16, #upmem<space mram>>
  %w = upmem.wram : memref<8xi16, #upmem<space wram>>
  %s = upmem.wram shared : memref<2xi32, #upmem<space wram>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1 : i32
  upmem.mram_read %a[%at] to %w[%c0] count %c8 : memref<16xi16, #upmem<space mram>>, memref<8xi16, #upmem<space wram>>
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %w[%i] : memref<8xi16, #upmem<space wram>>
    %y = arith.muli %x, %k : i16
    memref.store %y, %w[%i] : memref<8xi16, #upmem<space wram>>
  }
  upmem.barrier
  upmem.critical %c0 {
    memref.store %one, %s[%c0] : memref<2xi32, #upmem<space wram>>
  }
  upmem.return
}
