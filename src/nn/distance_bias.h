#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "nn/init.h"

/// What the distance between a query and a key adds to their score, instead of positions that are
/// added to embeddings. Self-attention alone has such a bias; attention over an encoder's rows has
/// none.
namespace stretto::nn {

/// Slopes of ALiBi (Press et al. 2021, arXiv:2108.12409, section 3): of n heads, a power of two,
/// head i = 1, 2, … has 2^(-8 i / n). Other numbers take those of the power p below, and behind
/// them every second one of 2 p heads, from the first on, as the authors' program does.
std::vector<double> alibi_slopes(int64_t num_heads);

/// Buckets of T5 (Raffel et al. 2020, arXiv:1910.10683, section 2.1, with the published numbers):
/// near distances have one each, farther ones share them in steps that grow with the logarithm, and
/// all from kT5MostDistance on have the last.
constexpr int64_t kT5Buckets = 32, kT5MostDistance = 128;

/// @param distance  place of the key minus place of the query
/// @param causal    keys behind the query share bucket 0, and all buckets serve those before it;
///                  otherwise each direction has half of them, the second half for keys behind
int64_t t5_bucket(int64_t distance, bool causal);

struct DistanceBiasOptions {
  std::string kind = "alibi";  ///< "alibi" or "t5"
  int64_t num_heads = 8;
  bool causal = false;
};

/// The bias of one stack, which all its layers share.
///
/// "alibi": -slope |i - j|, nothing to learn; in a causal stack this is the paper's, in an encoder
/// the same to both sides. "t5": a learned number for each bucket and head, `weight` [32, H],
/// normal with deviation D^-0.5 of width D, as T5 begins. T5 leaves the factor 1 / sqrt(d) of the
/// scores out and folds it into the first weights of queries; here scores keep it, and the bias is
/// added after it.
class DistanceBiasImpl : public torch::nn::Module {
 public:
  DistanceBiasImpl(const Init& init, const DistanceBiasOptions& options, int64_t d_model);

  /// The bias for sequences of up to `longest` tokens, on the device of `like`: one table [H,
  /// distances] for kernels::self_attention and decode_self_attention.
  kernels::DistanceBias forward(int64_t longest, const at::Tensor& like) const;

  at::Tensor weight;  ///< of T5, else undefined

 private:
  DistanceBiasOptions options_;
};
TORCH_MODULE(DistanceBias);

}  // namespace stretto::nn
