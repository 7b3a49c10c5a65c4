/* What the SDK's calls mean on one DPU, with a thread for each tasklet. */
#ifndef SHIM_H
#define SHIM_H
#include <pthread.h>
#include <stdint.h>

#define __host
#define __mram_ptr
#define __dma_aligned __attribute__((aligned(8)))
#define DPU_MRAM_HEAP_POINTER shim_mram

extern uint8_t *shim_mram;
uint32_t me(void);

void mram_read(const void *from, void *to, uint32_t size);
void mram_write(const void *from, void *to, uint32_t size);

#define BARRIER_INIT(name, count) static pthread_barrier_t name; \
  __attribute__((constructor)) static void name##_init(void) { \
    pthread_barrier_init(&name, 0, count); \
  }
#define barrier_wait(barrier) pthread_barrier_wait(barrier)

#define MUTEX_POOL_INIT(name, count) \
  _Static_assert((count) > 0 && ((count) & ((count) - 1)) == 0, "a power of two"); \
  static pthread_mutex_t name[count]; \
  __attribute__((constructor)) static void name##_init(void) { \
    for (int i = 0; i < count; i++) pthread_mutex_init(&name[i], 0); \
  }
#define SHIM_MUTEX(pool, id) (&(*(pool))[(id) & (sizeof *(pool) / sizeof **(pool) - 1)])
#define mutex_pool_lock(pool, id) pthread_mutex_lock(SHIM_MUTEX(pool, id))
#define mutex_pool_unlock(pool, id) pthread_mutex_unlock(SHIM_MUTEX(pool, id))
#endif
