#include "data/samples_in_memory.h"

#include <utility>
#include <variant>

namespace stretto::data {

SamplesInMemory::SamplesInMemory(Batch samples) : samples_(std::move(samples)) {
  std::vector<uint32_t> lengths;
  std::visit(
      [&](const auto& column) {
        for (int64_t i = 0; i < column.num_sequences(); ++i) {
          lengths.push_back(static_cast<uint32_t>(column.length(i)));
        }
      },
      samples_.columns.at(0));
  order_ = order_by_length({lengths});
}

Batch SamplesInMemory::empty_batch() const {
  return part(samples_, 0, 0);
}

void SamplesInMemory::append(int64_t /*epoch*/, int64_t sample, Batch& batch) const {
  batch.sample_ids.push_back(samples_.sample_ids[static_cast<size_t>(sample)]);
  for (size_t i = 0; i < samples_.columns.size(); ++i) {
    std::visit(
        [&](const auto& column) {
          using Values = std::decay_t<decltype(column)>;
          std::get<Values>(batch.columns[i]).append(column.sequence(sample));
        },
        samples_.columns[i]);
  }
}

}  // namespace stretto::data
