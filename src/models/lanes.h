#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"
#include "models/encoder.h"

namespace stretto::models {

/// Lengths of the sequences between these bounds.
std::vector<int64_t> lengths_of(const kernels::Offsets& offsets);

/// The layer of a decoder of so many that Decoder::attention() is asked for; -1 = the last.
/// @param decoder  its name, for the error. Throws c10::Error for a layer that there is not.
int64_t attending_layer(int64_t layer, size_t num_layers, const char* decoder);

/// Attention weights of all pairs, flat, as a [queries, keys] matrix for each pair.
std::vector<at::Tensor> attention_blocks(const at::Tensor& weights, const kernels::Offsets& queries,
                                         const kernels::Offsets& keys);

/// Which lanes of an incremental decoder belong to which source, and the memory rows of the sources
/// that still have lanes. Lanes of a source stand together: to attention they are one sequence of
/// queries over that source's rows.
class Lanes {
 public:
  /// What reorder() changed.
  struct Change {
    bool lanes_left = false;  ///< there are fewer lanes than before
    at::Tensor parents;       ///< int64 [lanes]: where each lane was
    at::Tensor rows;          ///< int64: memory rows that stay; undefined when all do
  };

  Lanes(const Encoded& memory, int64_t lanes_per_source);

  int64_t size() const { return static_cast<int64_t>(sources_.size()); }
  const kernels::Offsets& query_offsets() const { return query_offsets_; }
  const kernels::Offsets& key_offsets() const { return key_offsets_; }
  const std::vector<int64_t>& sources() const { return sources_; }
  c10::Device device() const { return device_; }

  /// @param parents  lane i continues lane parents[i]; ascending by source
  /// Throws c10::Error for a parent that there is not, or lanes out of the order of their sources.
  Change reorder(const std::vector<int64_t>& parents);

 private:
  void set_offsets();
  at::Tensor drop_sources();

  c10::Device device_;
  std::vector<int64_t> lengths_;  ///< rows of the sources that still have lanes
  std::vector<int64_t> sources_;  ///< [lanes], ascending: index into lengths_
  kernels::Offsets query_offsets_, key_offsets_;
};

}  // namespace stretto::models
