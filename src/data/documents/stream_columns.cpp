#include "data/documents/stream_columns.h"

namespace stretto::data {

void append_stretch(const Documents& documents, StreamRange range, int64_t sample_id,
                    Batch& batch) {
  auto& inputs = batch.column<int64_t>(kStreamInputs);
  auto& next = batch.column<int64_t>(kStreamNext);
  if (range.begin == 0) {
    documents.append(documents.num_ids() - 1, documents.num_ids(), inputs.values);  // a separator
  } else {
    documents.append(range.begin - 1, range.begin, inputs.values);
  }
  documents.append(range.begin, range.end - 1, inputs.values);
  documents.append(range.begin, range.end, next.values);
  inputs.close_sequence();
  next.close_sequence();
  batch.sample_ids.push_back(sample_id);
}

}  // namespace stretto::data
