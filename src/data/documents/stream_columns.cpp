#include "data/documents/stream_columns.h"

#include <algorithm>
#include <vector>

namespace stretto::data {
namespace {

void append_tokens(const Documents& documents, StreamRange range, std::vector<int64_t>& ids) {
  const uint64_t all = documents.num_ids();
  documents.append(range.begin, std::min(range.end, all), ids);
  if (range.end > all) documents.append(0, range.end - all, ids);
}

}  // namespace

void append_stretch(const Documents& documents, StreamRange range, int64_t sample_id,
                    Batch& batch) {
  auto& inputs = batch.column<int64_t>(kStreamInputs);
  auto& next = batch.column<int64_t>(kStreamNext);
  if (range.begin == 0) {
    documents.append(documents.num_ids() - 1, documents.num_ids(), inputs.values);  // a separator
  } else {
    documents.append(range.begin - 1, range.begin, inputs.values);
  }
  append_tokens(documents, {range.begin, range.end - 1}, inputs.values);
  append_tokens(documents, range, next.values);
  inputs.close_sequence();
  next.close_sequence();
  batch.sample_ids.push_back(sample_id);
}

}  // namespace stretto::data
