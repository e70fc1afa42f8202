#pragma once

#include <memory>
#include <vector>

#include "data/batch.h"
#include "decoding/step_model.h"
#include "models/transformer.h"

namespace stretto::models {

/// A Transformer one token at a time, for L lanes (hypotheses) of B sources.
///
/// The encoder runs once; keys and values of its output are computed once per layer and shared by
/// all lanes of a source. Self-attention keys and values are cached: a step costs one row per lane.
/// Beams that move only rewrite a table of integers (`lineage`); cached rows are copied only when
/// a quarter of the lanes has left, which keeps the caches about as narrow as the lanes that live.
class TransformerStepModel : public decoding::StepModel {
 public:
  TransformerStepModel(std::shared_ptr<Transformer> model, const data::PackedTokens& src,
                       int64_t lanes_per_src);

  at::Tensor step(const at::Tensor& tokens) override;
  void reorder(const std::vector<int64_t>& parents) override;
  int64_t vocab_size() const override { return model_->num_classes(); }

 private:
  /// What one decoder layer remembers.
  struct LayerCache {
    at::Tensor cross_kv;  ///< [Ns, 2D]
    at::Tensor k, v;      ///< [room, slots, D]: at least L slots, more where lanes have left
  };

  void encode(const data::PackedTokens& src);
  void make_room();
  void set_sources();
  void drop_sources(const std::vector<int64_t>& old_sources);
  void copy_history();
  at::Tensor attend_self(const DecoderLayerImpl& layer, LayerCache& cache, const at::Tensor& x);
  at::Tensor attend_cross(const DecoderLayerImpl& layer, const LayerCache& cache,
                          const at::Tensor& x) const;

  std::shared_ptr<Transformer> model_;
  std::vector<LayerCache> caches_;
  std::vector<int64_t> src_lengths_;   ///< of the sources that still have lanes
  std::vector<int64_t> lane_sources_;  ///< [L], ascending: index into src_lengths_
  kernels::Offsets query_offsets_, key_offsets_;
  at::Tensor lineage_;    ///< int32 [L, room]: whose slot holds step t of this lane's history
  at::Tensor slots_;      ///< int32 [L]: 0 … L - 1
  at::Tensor positions_;  ///< int64 [L]: the present step
  int64_t time_ = 0;      ///< steps taken
};

}  // namespace stretto::models
