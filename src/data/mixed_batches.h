#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"

namespace stretto::data {

/// One of several sources whose micro-batches are mixed.
struct MixedSource {
  std::shared_ptr<const BatchSource> batches;
  double repeat =
      1;  ///< how often an epoch of the mixture sees its micro-batches; 0.5 = every second
  /// Added to the identity of its samples, so that they differ from those of the other sources.
  int64_t first_sample_id = 0;
};

/// Micro-batches of several sources as one. Each is of one source, as Batch::stream says.
///
/// An epoch has m_k = max(1, round(repeat_k * n_k)) micro-batches of source k, which has n_k in its
/// own epochs. They are spread evenly: number j of source k, from 0, stands at (j + 1/2) / m_k of
/// the epoch; of two at one place the source that comes first goes first. The order of sources is
/// that of every epoch. What a source gives goes on through its own epochs, one after the other:
/// number j of epoch e is micro-batch (e * m_k + j) mod n_k of its epoch (e * m_k + j) div n_k.
/// With a repeat of 0.5 two epochs see each micro-batch once.
///
/// Throws std::invalid_argument without sources, for one without micro-batches or with lanes
/// (Order::kLanes), and for a repeat that is not positive.
std::unique_ptr<BatchSource> mix_batches(std::vector<MixedSource> sources);

}  // namespace stretto::data
