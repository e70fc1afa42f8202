#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compress/stack_shape.h"
#include "optim/arena.h"

/// Whole parts of Transformer layers, found, weighed and taken out by the names of tensors:
///
///     PREFIXlayers.N.ffn.{up,down}.{weight,bias}
///     PREFIXlayers.N.self_attention.{qkv,out}.{weight,bias}
///     PREFIXlayers.N.cross_attention.{q,kv,out}.{weight,bias}
///
/// N layers, D model width, F units of a feed-forward part, W head width, Q = W * num_heads,
/// E = W * num_kv_heads.
namespace stretto::compress {

/// The tensors of a model by name, fp32 on the CPU.
using NamedTensors = std::map<std::string, torch::Tensor>;

/// Heads of a stack by its prefix: of queries, and of keys and values. {0, 0} = not known.
using HeadsOf = std::function<std::pair<int64_t, int64_t>(const std::string& prefix)>;

/// As the attention of a model's layers has them.
HeadsOf heads_of(const torch::nn::Module& model);

/// All stacks of Transformer layers; none where a model has none. A stack whose self-attention has
/// tensors beside those above and norms of heads, such as vectors of distances, keeps its heads.
/// Throws Error(kUsage) where maps have LoRA, which must be merged before.
std::vector<StackShape> find_stacks(const NamedTensors& tensors, const HeadsOf& heads);

/// The importance of the parts of stacks.
///
/// By gradients (Michel et al. 2019, arXiv:1905.10650, for heads; Molchanov et al. 2017,
/// arXiv:1611.06440): how fast the loss of a batch changes when a part's output is scaled,
///
///     |sum of w dL/dw over the columns of the out or down matrix that read the part|,
///
/// summed over batches. By magnitudes, without data: the norm of these columns times that of the
/// rows that make the part. A layer counts as the sum of its parts' branches, with their biases.
class PartImportance {
 public:
  explicit PartImportance(std::vector<StackShape> stacks);

  /// Adds the gradients of one batch, as they stand in the arena.
  void add_gradients(const optim::Arena& arena);
  /// The same of tensors by name. @param grads  under the names of `weights`
  void add_gradients(const NamedTensors& weights, const NamedTensors& grads);
  void add_magnitudes(const NamedTensors& weights);

  const std::vector<StackShape>& shapes() const { return shapes_; }
  const std::vector<StackImportance>& stacks() const { return stacks_; }

 private:
  std::vector<StackShape> shapes_;
  std::vector<StackImportance> stacks_;
};

/// The tensors without what is not chosen; layers are numbered anew. The others are shared.
/// TORCH_CHECK: tensors have the shapes of the stack.
NamedTensors without_parts(const NamedTensors& tensors, const StackShape& shape,
                           const StackChoice& choice);

}  // namespace stretto::compress
