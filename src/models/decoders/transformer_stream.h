#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/attention/placed.h"
#include "models/decoders/transformer.h"

namespace stretto::models {

/// A Transformer's decoder one token at a time, for sources that come and go, on a CPU.
///
/// Keys and values stay where they are written. A lane's history is a list of rows of the caches:
/// lanes that move copy such lists, lanes of a source share the rows of a common past, and a row
/// that is in no history any more is the next to be written. Each history has its own first step,
/// so that sources may enter at any time. Caches therefore hold about as many rows as histories
/// have steps together, and grow by half.
///
/// Keys and values of memories are computed when a source enters, stand one behind the other, and
/// are moved together when there is no room behind the last of them.
class TransformerStreamDecoder : public StreamDecoder {
 public:
  explicit TransformerStreamDecoder(std::shared_ptr<TransformerDecoder> decoder);

  void enter(const Encoded& memory) override;
  /// Throws c10::Error for another number of ids than there are lanes.
  at::Tensor step(const at::Tensor& ids) override;
  /// Throws c10::Error for a parent that there is not, or lanes out of the order of their sources.
  void reorder(const std::vector<int64_t>& parents) override;
  int64_t most_cache_bytes() const override { return most_cache_bytes_; }

  int64_t rows_of_steps() const { return std::ssize(users_); }  ///< with room for more
  int64_t rows_in_use() const { return std::ssize(users_) - std::ssize(free_); }
  int64_t rows_of_memories() const { return layers_.front().memory.size(0); }  ///< with room

 private:
  /// What one layer remembers.
  struct LayerRows {
    at::Tensor k, v;    ///< [rows of steps, E]
    at::Tensor memory;  ///< [rows of memories, 2E]
  };

  void make_room_for_memory(int64_t rows);
  void make_room_for_steps();
  void begin_steps();  ///< gives each lane a row for its next step
  void note_bytes();
  at::Tensor attend_self(const TransformerDecoderLayerImpl& layer, LayerRows& rows,
                         const at::Tensor& x);
  at::Tensor attend_cross(const TransformerDecoderLayerImpl& layer, const LayerRows& rows,
                          const at::Tensor& x) const;

  std::shared_ptr<TransformerDecoder> decoder_;
  std::vector<LayerRows> layers_;
  kernels::PlacedMemories memories_;             ///< of the sources that are there
  int64_t memory_end_ = 0;                       ///< the row behind the last memory
  std::vector<std::vector<int32_t>> histories_;  ///< [L]: rows of each lane's steps
  std::vector<int32_t> users_;                   ///< of each row: histories that it is in
  std::vector<int32_t> free_;                    ///< rows that are in none
  at::Tensor positions_;                         ///< int64 [L]: the present step of each lane
  kernels::DistanceBias bias_;                   ///< where all layers share one
  int64_t bias_steps_ = 0;                       ///< that it reaches
  int64_t most_cache_bytes_ = 0;
};

}  // namespace stretto::models
