#pragma once

/// What kernels_bench.cpp takes from its other files.
namespace stretto::kernels {

/// Registers the convolutions in time beside libtorch's on padded batches.
void add_convolutions();

}  // namespace stretto::kernels
