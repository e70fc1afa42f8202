#pragma once

#include <cstdint>
#include <memory>

#include "data/batch_source.h"
#include "data/documents/stream_columns.h"
#include "data/length_batches.h"

namespace stretto::data {

/// Stretches of a stream, which stand for themselves.
struct StretchSetting {
  int64_t length = 0;       ///< tokens of a stretch; the last one may have fewer
  int64_t max_tokens = 0;   ///< of a micro-batch
  int64_t max_samples = 0;  ///< of a micro-batch; 0 = any number
  Shuffle shuffle = Shuffle::kNo;
  bool random_start = false;  ///< each epoch cuts the stream from another place on
  uint64_t seed = 0;
};

/// The stream cut into stretches: sample i has the tokens from i · length on, so that each token is
/// predicted once in an epoch. The columns are those of stream_columns.h. Any batch is a function
/// of (seed, epoch, index); without a shuffle they are the same in each epoch.
///
/// With random_start, sample i of an epoch has the tokens from s + i · length on, of the stream
/// that goes on at its begin where it ends. s is drawn from all places, as a function of (seed,
/// epoch): an epoch still has each token once, each with the one before it.
///
/// Throws std::invalid_argument for a length below 1, and Error(kUsage) for one above max_tokens.
std::unique_ptr<BatchSource> make_stretches(std::shared_ptr<const Documents> documents,
                                            const StretchSetting& setting);

}  // namespace stretto::data
