"""The header of translated DPU programs: integer arithmetic as the IR means it.

Values are kept in unsigned types, where C wraps around; division by 0, the quotient of the least
number by -1, and shifts by the width or more are defined here, because C leaves them open.
"""

WIDTHS = (8, 16, 32, 64)

_TOP = """\
/* Integer arithmetic of translated kernels: wraps around, and divides by 0 to 0. */
#ifndef CIM_DPU_H
#define CIM_DPU_H
#include <stdbool.h>
#include <stdint.h>
"""

_WIDTH = """
static inline int{w}_t s{w}(uint{w}_t a) { return (int{w}_t)a; }
static inline uint{w}_t shl{w}(uint{w}_t a, uint{w}_t n) {
  return n < {w} ? (uint{w}_t)((uint64_t)a << n) : (uint{w}_t)0;
}
static inline uint{w}_t shru{w}(uint{w}_t a, uint{w}_t n) {
  return n < {w} ? (uint{w}_t)(a >> n) : (uint{w}_t)0;
}
static inline uint{w}_t shrs{w}(uint{w}_t a, uint{w}_t n) {
  return (uint{w}_t)(s{w}(a) >> (n < {w} ? n : {w} - 1));
}
static inline uint{w}_t divu{w}(uint{w}_t a, uint{w}_t b) { return b ? (uint{w}_t)(a / b) : 0; }
static inline uint{w}_t remu{w}(uint{w}_t a, uint{w}_t b) { return b ? (uint{w}_t)(a % b) : a; }
static inline uint{w}_t divs{w}(uint{w}_t a, uint{w}_t b) {
  if (b == (uint{w}_t)-1) return (uint{w}_t)(0 - a);
  return b ? (uint{w}_t)(s{w}(a) / s{w}(b)) : 0;
}
static inline uint{w}_t rems{w}(uint{w}_t a, uint{w}_t b) {
  if (b == (uint{w}_t)-1) return 0;
  return b ? (uint{w}_t)(s{w}(a) % s{w}(b)) : a;
}
static inline uint{w}_t floordivs{w}(uint{w}_t a, uint{w}_t b) {
  uint{w}_t q = divs{w}(a, b), r = rems{w}(a, b);
  return b && r && (s{w}(r) < 0) != (s{w}(b) < 0) ? (uint{w}_t)(q - 1) : q;
}
static inline uint{w}_t ceildivs{w}(uint{w}_t a, uint{w}_t b) {
  uint{w}_t q = divs{w}(a, b), r = rems{w}(a, b);
  return b && r && (s{w}(r) < 0) == (s{w}(b) < 0) ? (uint{w}_t)(q + 1) : q;
}
static inline uint{w}_t ceildivu{w}(uint{w}_t a, uint{w}_t b) {
  return b ? (uint{w}_t)(a / b + (a % b != 0)) : 0;
}
static inline bool ltu{w}(uint{w}_t a, uint{w}_t b) { return a < b; }
static inline bool lts{w}(uint{w}_t a, uint{w}_t b) { return s{w}(a) < s{w}(b); }
static inline uint{w}_t mins{w}(uint{w}_t a, uint{w}_t b) { return s{w}(a) < s{w}(b) ? a : b; }
static inline uint{w}_t maxs{w}(uint{w}_t a, uint{w}_t b) { return s{w}(a) > s{w}(b) ? a : b; }
static inline uint{w}_t minu{w}(uint{w}_t a, uint{w}_t b) { return a < b ? a : b; }
static inline uint{w}_t maxu{w}(uint{w}_t a, uint{w}_t b) { return a > b ? a : b; }
static inline uint{w}_t abs{w}(uint{w}_t a) { return s{w}(a) < 0 ? (uint{w}_t)(0 - a) : a; }
"""

_BOTTOM = "#endif\n"


def header() -> str:
    """The text of `cim_dpu.h`."""
    return _TOP + "".join(_WIDTH.replace("{w}", str(width)) for width in WIDTHS) + _BOTTOM
