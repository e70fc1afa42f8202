#pragma once

#include <cstdint>
#include <memory>

#include "data/batch_source.h"
#include "data/documents/stream_columns.h"

namespace stretto::data {

/// Lanes of a stream, each of which goes on from one update to the next.
struct LaneSetting {
  int64_t lanes = 1;   ///< texts that are read side by side
  int64_t groups = 1;  ///< micro-batches that are a stretch of all lanes; divides the lanes evenly
                       ///< as far as that goes
  int64_t length =
      0;  ///< most tokens of a stretch, at least 2; where they vary, their usual number
  /// How lengths vary from stretch to stretch; 0 = as little as they can. See below.
  double deviation = 0;
  double halved = 0;  ///< share of stretches that are drawn about half of `length`
  uint64_t seed = 0;  ///< of lengths that vary
};

/// The stream cut into as many parts as there are lanes, about equally long. A lane reads a part
/// from its begin to its end in an epoch, a stretch in each turn of all groups. Stretches are as
/// equal as they can be: all lanes have as many, and each token is predicted once in an epoch.
///
/// With a deviation, lengths vary as in AWD-LSTM (Merity et al. 2017, section 5), so that the cuts
/// lie elsewhere in each epoch: stretch i of all lanes draws max(5, N(m, deviation)) tokens, as a
/// function of (seed, epoch, i), where m is `length`, or with probability `halved` half of it. Its
/// length is what it drew as a share of what all drew, so that an epoch still ends with the text,
/// and at least one token. (Merity et al.: a deviation of 5, and 0.05 of them halved.)
/// rate_factor() is the length of a stretch over `length`: longer stretches, of which there are
/// fewer, then weigh no less.
///
/// In epoch e, lane l reads part (l + e) mod lanes: its state goes on where the text does. Only the
/// lane that comes from the last part to the first does not.
///
/// Micro-batch i of an epoch has the lanes of group i mod groups, which are those whose number has
/// that remainder, each with its stretch i / groups. So any batch is a function of (epoch, index),
/// on any process. A sample's id is that of its place in the text: part · stretches + stretch.
/// Batch::lanes has the lanes, and order() is kLanes (data/batch_source.h).
///
/// Throws std::invalid_argument for a length below 2, groups that are not 1 to `lanes`, a negative
/// deviation or a share that is not in [0, 1], and Error(kBadData) where the text has fewer than
/// two tokens for each lane.
std::unique_ptr<BatchSource> make_lanes(std::shared_ptr<const Documents> documents,
                                        const LaneSetting& setting);

}  // namespace stretto::data
