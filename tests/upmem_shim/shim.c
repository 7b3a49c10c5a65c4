/* Runs a DPU program: `shim_run` gives it MRAM and a thread for each tasklet. */
#include "shim.h"
#include <stdio.h>
#include <string.h>

int dpu_main(void);

uint8_t *shim_mram;
static uint8_t *shim_end;
static const char *shim_error;
static __thread uint32_t shim_tasklet;

uint32_t me(void) { return shim_tasklet; }

static int bad(const void *mram, const void *wram, uint32_t size) {
  const uint8_t *at = mram;
  if (size < 8 || size > 2048 || size % 8) shim_error = "a size of DMA";
  else if (((uintptr_t)mram | (uintptr_t)wram) % 8) shim_error = "an address of DMA";
  else if (at < shim_mram || at + size > shim_end) shim_error = "a place in MRAM";
  else return 0;
  return 1;
}

void mram_read(const void *from, void *to, uint32_t size) {
  if (!bad(from, to, size)) memcpy(to, from, size);
}

void mram_write(const void *from, void *to, uint32_t size) {
  if (!bad(to, from, size)) memcpy(to, from, size);
}

static void *start(void *number) {
  shim_tasklet = (uint32_t)(uintptr_t)number;
  dpu_main();
  return 0;
}

/* 0, or what went wrong. MRAM is at a multiple of 8. */
const char *shim_run(uint8_t *mram, uint64_t size) {
  pthread_t threads[NR_TASKLETS];
  shim_mram = mram;
  shim_end = mram + size;
  shim_error = 0;
  for (uintptr_t i = 0; i < NR_TASKLETS; i++) pthread_create(&threads[i], 0, start, (void *)i);
  for (int i = 0; i < NR_TASKLETS; i++) pthread_join(threads[i], 0);
  return shim_error;
}
