#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/table.h"

namespace stretto::kernels::cpu::portable {
namespace {

constexpr const char* kName = "portable";
constexpr int64_t kLanes = 4;     // floats in a vector
constexpr int64_t kTileRows = 4;  // rows of a product kept in registers

// Each file uses what stands before it.
// clang-format off
#include "kernels/cpu/common.inc"
#include "kernels/cpu/half.inc"
#include "kernels/cpu/loops.inc"
#include "kernels/loss/r_drop.inc"
#include "kernels/optimizer/loops.inc"
#include "kernels/cpu/transpose.inc"
#include "kernels/cpu/dots.inc"
#include "kernels/attention/loops.inc"
#include "kernels/gemm/product.inc"
#include "kernels/recurrent/cells.inc"
#include "kernels/recurrent/attend.inc"
#include "kernels/gemm/few_rows.inc"
#include "kernels/gemm/mixed.inc"
#include "kernels/convolution/loops.inc"
#include "kernels/convolution/windows.inc"
#include "kernels/norm/planes.inc"
namespace few_bits {
#include "kernels/quantised/rounding.inc"
#include "kernels/quantised/dots.inc"
#include "kernels/quantised/loops.inc"
}  // namespace few_bits
#include "kernels/cpu/entries.inc"
// clang-format on

}  // namespace

const Table kTable = kLoops;

}  // namespace stretto::kernels::cpu::portable
