#pragma once

#include "data/labelled/labelled_samples.h"

namespace stretto::testing {

/// All columns of all samples, in the order of the files.
inline data::Batch whole(const data::LabelledSamples& samples) {
  data::Batch batch = samples.empty_batch();
  for (int64_t i = 0; i < samples.size(); ++i) samples.append(/*epoch=*/0, i, batch);
  return batch;
}

}  // namespace stretto::testing
