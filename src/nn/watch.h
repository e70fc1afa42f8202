#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>

namespace stretto::nn {

/// Where a watched tensor stands.
struct Watched {
  std::string module;  ///< path in the model, such as `encoder.layers.2.ffn.up`; `model` = all
  bool backward;       ///< the gradient of the module's output, else the output
  const at::Tensor& values;
  bool parameter = false;  ///< the gradient of a parameter from one use of it, named by `module`
};
using Watcher = std::function<void(const Watched&)>;

/// For as long as it lives, `watch()` on this thread (and the backward of what it recorded) tells
/// the watcher every module's output and, in backward, the output's gradient, in the order in which
/// they come to be. One at a time on a thread: a second throws c10::Error. On CUDA backward runs on
/// threads of its own; the watcher is never called twice at once.
///
/// A tensor that several modules hand on (the last layer of a block is also the block's output) is
/// told once, under the name of the innermost. Attention and feed-forward part tell what lies
/// between their projections under their own names.
class WatchScope {
 public:
  WatchScope(torch::nn::Module& model, Watcher watcher);
  ~WatchScope();
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

  struct State;

 private:
  std::shared_ptr<State> state_;  ///< hooks of recorded tensors see by it that the scope has ended
};

/// A module's output on its way out; may be undefined. Costs one load of a pointer while nothing
/// watches.
at::Tensor watch(const torch::nn::Module& module, at::Tensor output);

/// A parameter on its way into an operator. Autograd knows the gradient of a parameter that has
/// several uses (tied embeddings) only when the last of them is done; this use's part is told as
/// soon as it is there. The watcher gets `name`, which is the same however parameters are tied.
at::Tensor watch_use(const std::string& name, const at::Tensor& parameter);

}  // namespace stretto::nn
