#include "data/batch.h"

#include <cstdlib>
#include <type_traits>

namespace stretto::data {
namespace {

template <class T>
void append(const Ragged<T>& part, Ragged<T>& whole) {
  const int64_t base = whole.num_rows();
  if (base + part.num_rows() > std::numeric_limits<int32_t>::max()) {
    throw std::length_error("concatenate: more than 2^31 - 1 rows in one column");
  }
  if (whole.width != part.width) {
    throw std::invalid_argument("concatenate: rows of different widths");
  }
  whole.values.insert(whole.values.end(), part.values.begin(), part.values.end());
  for (size_t i = 1; i < part.offsets.size(); ++i) {
    whole.offsets.push_back(static_cast<int32_t>(base + part.offsets[i]));
  }
}

void append(const Column& part, Column& whole) {
  std::visit(
      [&](const auto& from) {
        auto* to = std::get_if<std::decay_t<decltype(from)>>(&whole);
        if (to == nullptr) {
          throw std::invalid_argument("concatenate: columns of different kinds");
        }
        append(from, *to);
      },
      part);
}

template <class T>
Ragged<T> cut(const Ragged<T>& whole, int64_t begin, int64_t end) {
  const auto first = static_cast<size_t>(begin), last = static_cast<size_t>(end);
  const int32_t base = whole.offsets[first];
  Ragged<T> part;
  part.width = whole.width;
  part.values.assign(whole.values.begin() + base * whole.width,
                     whole.values.begin() + whole.offsets[last] * whole.width);
  for (size_t i = first + 1; i <= last; ++i) part.offsets.push_back(whole.offsets[i] - base);
  return part;
}

int64_t rows_before(const Column& column, int64_t sequence) {
  return std::visit(
      [&](const auto& one) { return int64_t{one.offsets[static_cast<size_t>(sequence)]}; }, column);
}

}  // namespace

Batch concatenate(const std::vector<Batch>& parts) {
  if (parts.empty()) return {};
  Batch whole = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    const Batch& next = parts[i];
    if (next.columns.size() != whole.columns.size()) {
      throw std::invalid_argument("concatenate: batches of different numbers of columns");
    }
    if (next.stream != whole.stream) {
      throw std::invalid_argument("concatenate: batches of different streams");
    }
    if (next.epoch != whole.epoch) {
      throw std::invalid_argument("concatenate: batches of different epochs");
    }
    if (next.lanes.empty() != whole.lanes.empty()) {
      throw std::invalid_argument("concatenate: batches with lanes and without");
    }
    whole.sample_ids.insert(whole.sample_ids.end(), next.sample_ids.begin(), next.sample_ids.end());
    whole.lanes.insert(whole.lanes.end(), next.lanes.begin(), next.lanes.end());
    for (size_t k = 0; k < whole.columns.size(); ++k) append(next.columns[k], whole.columns[k]);
  }
  return whole;
}

Batch part(const Batch& batch, int64_t begin, int64_t end) {
  Batch cut_out;
  cut_out.stream = batch.stream;
  cut_out.epoch = batch.epoch;
  cut_out.sample_ids.assign(batch.sample_ids.begin() + begin, batch.sample_ids.begin() + end);
  if (!batch.lanes.empty()) {
    cut_out.lanes.assign(batch.lanes.begin() + begin, batch.lanes.begin() + end);
  }
  for (const Column& column : batch.columns) {
    cut_out.columns.push_back(
        std::visit([&](const auto& one) -> Column { return cut(one, begin, end); }, column));
  }
  return cut_out;
}

Batch even_part(const Batch& batch, int64_t number, int64_t parts) {
  const int64_t sequences = batch.num_sequences();
  const auto all_rows_before = [&](int64_t i) {
    int64_t rows = 0;
    for (const Column& column : batch.columns) rows += rows_before(column, i);
    return rows;
  };
  const int64_t total = all_rows_before(sequences);
  // The boundary that comes nearest to an even cut, but with a sequence for each part if possible.
  const auto boundary = [&](int64_t before) {
    if (sequences < parts) return std::min(before, sequences);
    int64_t at = before;
    const int64_t last = sequences - (parts - before);
    const auto distance = [&](int64_t i) {
      return std::abs(all_rows_before(i) * parts - total * before);
    };
    while (at < last && distance(at + 1) < distance(at)) ++at;
    return at;
  };
  return part(batch, boundary(number), boundary(number + 1));
}

}  // namespace stretto::data
