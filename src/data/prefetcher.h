#pragma once

#include <cstdint>
#include <memory>

#include "data/batch_source.h"
#include "data/loading.h"
#include "data/rank_batches.h"

namespace stretto::data {

/// Walks a BatchSource in the order of training from any position, some batches ahead on threads;
/// of several processes each walks its share. The order of what next() returns does not depend on
/// threads.
class Prefetcher {
 public:
  using Position = data::Position;
  /// @param start  with a share: the beginning of an update
  Prefetcher(const BatchSource& source, Position start, Loading loading, RankBatches share = {});
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  /// Rethrows what loading threw. Throws std::logic_error when nothing falls to this process.
  Batch next();
  Position position() const;  ///< of the batch that next() gives next

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stretto::data
