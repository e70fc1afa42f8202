#include "nn/watch.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <unordered_map>

#include "kernels/kernels.h"

namespace stretto::nn {

struct WatchScope::State {
  Watcher watcher;
  std::unordered_map<const torch::nn::Module*, std::string> paths;
  std::mutex mutex;  // backward on CUDA runs on other threads

  std::string path_of(const torch::nn::Module& module) const {
    const auto found = paths.find(&module);
    return found != paths.end() ? found->second : module.name();
  }
  void tell(const Watched& watched) {
    const std::scoped_lock lock(mutex);
    watcher(watched);
  }
};

namespace {

/// Norms of fp16 rows would overflow in their own type.
at::Tensor told(const at::Tensor& values) {
  return kernels::widened(values);
}

thread_local const std::shared_ptr<WatchScope::State>* watching = nullptr;

void tell_gradient(const std::string& name, bool parameter, const at::Tensor& of) {
  // The recorded graph may outlive the scope; then its hooks find no watcher.
  const std::weak_ptr<WatchScope::State> weak = *watching;
  of.register_hook([weak, name, parameter](const at::Tensor& gradient) {
    if (const auto alive = weak.lock(); alive && gradient.defined()) {
      alive->tell({name, true, told(gradient), parameter});
    }
  });
}

// Out of line, so that without a watcher it stays a test of a pointer.
void tell(const torch::nn::Module& module, const at::Tensor& output) {
  const auto& state = *watching;
  const std::string path = state->path_of(module);
  state->tell({path, false, told(output)});
  if (output.requires_grad()) tell_gradient(path, /*parameter=*/false, output);
}

}  // namespace

WatchScope::WatchScope(torch::nn::Module& model, Watcher watcher)
    : state_(std::make_shared<State>()) {
  TORCH_CHECK(watching == nullptr, "[watch] a WatchScope is open on this thread already");
  state_->watcher = std::move(watcher);
  // Without the model itself, which need not be owned by a shared_ptr.
  state_->paths[&model] = "model";
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    state_->paths.emplace(item.value().get(), item.key());
  }
  watching = &state_;
}

WatchScope::~WatchScope() {
  watching = nullptr;
}

at::Tensor watch(const torch::nn::Module& module, at::Tensor output) {
  if (watching != nullptr && output.defined()) tell(module, output);
  return output;
}

at::Tensor watch_use(const std::string& name, const at::Tensor& parameter) {
  if (watching == nullptr || !at::GradMode::is_enabled() || !parameter.requires_grad()) {
    return parameter;
  }
  // A hook of the parameter itself would wait for the sum over all of its uses.
  const at::Tensor use = parameter.view_as(parameter);
  tell_gradient(name, /*parameter=*/true, use);
  return use;
}

}  // namespace stretto::nn
