#include "compress/held_zeros.h"

#include <cstddef>
#include <cstdint>

#include "compress/masks.h"

namespace stretto::compress {

void hold_zeros(store::QuantisedTensor& packed, std::string_view bits) {
  const store::QuantLayout layout = packed.view().layout();
  const auto pruned = unpack_mask(bits, layout.rows * layout.columns);
  store::QuantisedValues values = store::unpack(packed.view());
  for (size_t i = 0; i < pruned.size(); ++i) {
    if (pruned[i] == 0) continue;
    const auto index = static_cast<int64_t>(i);
    const auto scale =
        static_cast<size_t>(layout.scale_index(index / layout.columns, index % layout.columns));
    values.codes[i] = values.zeros.empty() ? int8_t{0} : values.zeros[scale];
  }
  packed = store::pack(packed.format, packed.shape, values);
}

}  // namespace stretto::compress
