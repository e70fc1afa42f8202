#pragma once

#include <cstddef>
#include <cstdint>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace stretto::testing {

/// Mutates an input whose first byte chooses one of several readers, and leaves that choice: what
/// is made of the seeds of one reader is for that reader.
/// @param choice  the bits of the first byte that choose
/// @return the new size
inline size_t mutate_for_its_reader(uint8_t* data, size_t size, size_t max_size,
                                    uint8_t choice = 0xFF) {
  if (size == 0) return LLVMFuzzerMutate(data, size, max_size);
  const unsigned reader = data[0] & choice;
  const size_t new_size = LLVMFuzzerMutate(data, size, max_size);
  const unsigned others = data[0] & ~unsigned{choice};
  data[0] = static_cast<uint8_t>(reader | others);
  return new_size;
}

}  // namespace stretto::testing
