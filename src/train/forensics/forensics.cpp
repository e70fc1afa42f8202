#include "train/forensics/forensics.h"

#include <torch/autograd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <span>

#include "base/text.h"
#include "nn/embedding.h"
#include "nn/watch.h"
#include "train/tied_samples.h"

namespace stretto::train {
namespace {

constexpr size_t kGradientsShown = 10;

bool all_finite(const torch::Tensor& values) {
  return torch::isfinite(values).all().item<bool>();
}

int64_t count_nonfinite(const torch::Tensor& values) {
  return values.numel() - torch::isfinite(values).sum().item<int64_t>();
}

double sum_of(const std::vector<torch::Tensor>& losses) {
  double sum = 0;
  for (const auto& loss : losses) sum += loss.item<double>();
  return sum;
}

/// Remembers the first tensor that is not finite.
class Watchdog {
 public:
  void see(TensorKind kind, const std::string& name, const torch::Tensor& values) {
    if (first_.kind != TensorKind::kNone) return;
    if (all_finite(values)) {
      first_.last_finite = name;
    } else {
      first_.kind = kind;
      first_.name = name;
    }
  }
  FirstNonfinite first() const {
    return first_.kind == TensorKind::kNone ? FirstNonfinite() : first_;
  }

 private:
  FirstNonfinite first_;
};

/// For as long as it lives, the watchdog sees the gradient of each parameter too, before it is
/// added to the arena's: only so is its turn among the modules' gradients known. Once for all
/// attempts, since libtorch's list of hooks never becomes shorter.
class ParameterHooks {
 public:
  ParameterHooks(torch::nn::Module& model, Watchdog& dog) {
    for (const auto& item : model.named_parameters()) {
      if (!item.value().requires_grad()) continue;
      const auto hook = [&dog, name = item.key()](const torch::Tensor& gradient) {
        if (gradient.defined()) dog.see(TensorKind::kParameterGradient, name, gradient);
      };
      hooks_.emplace_back(item.value(), item.value().register_hook(hook));
    }
  }
  ~ParameterHooks() {
    for (const auto& [parameter, hook] : hooks_) parameter.remove_hook(hook);
  }
  ParameterHooks(const ParameterHooks&) = delete;
  ParameterHooks& operator=(const ParameterHooks&) = delete;

 private:
  std::vector<std::pair<torch::Tensor, unsigned>> hooks_;
};

/// For as long as it lives, looked-up rows have no way of their own
/// (parallel/embedding_gradients.h) on which their gradients would pass the watchdog by: what it
/// sees does not depend on how many processes train, and a replay sees the same.
class DenseLookups {
 public:
  explicit DenseLookups(const torch::nn::Module& model) {
    for (const auto& module : model.modules(/*include_self=*/false)) {
      auto embedding = std::dynamic_pointer_cast<nn::EmbeddingImpl>(module);
      if (!embedding || !embedding->rows_to()) continue;
      kept_.emplace_back(embedding, embedding->rows_to());
      embedding->send_rows_to(nullptr);
    }
  }
  ~DenseLookups() {
    for (auto& [embedding, rows] : kept_) embedding->send_rows_to(std::move(rows));
  }
  DenseLookups(const DenseLookups&) = delete;
  DenseLookups& operator=(const DenseLookups&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<nn::EmbeddingImpl>, std::shared_ptr<nn::RowGradients>>>
      kept_;
};

/// Running statistics and the like, which forward passes in training change.
class KeptBuffers {
 public:
  explicit KeptBuffers(const torch::nn::Module& model) : buffers_(model.buffers()) {
    for (const auto& buffer : buffers_) copies_.push_back(buffer.clone());
  }
  ~KeptBuffers() {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(copies_[i]);
  }
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  std::vector<torch::Tensor> buffers_, copies_;
};

class Examiner {
 public:
  Examiner(Task& task, optim::Arena& arena, NonfiniteReport& report)
      : task_(task),
        arena_(arena),
        report_(report),
        preparation_(preparation_of(task, arena.params().device())),
        kept_(task.model()),
        dense_(task.model()),
        hooks_(task.model(), dog_) {
    task_.model().train();
  }

  ~Examiner() { arena_.zero_grads(); }
  Examiner(const Examiner&) = delete;
  Examiner& operator=(const Examiner&) = delete;

  void run(const std::vector<data::Batch>& micro_batches) {
    look_at_weights();
    for (size_t i = 0; i < micro_batches.size(); ++i) one_by_one(micro_batches[i]);
    if (report_.found()) {
      // A tied sample alone would be another computation.
      const bool may_be_samples =
          report_.weights.empty() && samples_tied_by(task_) == TiedBy::kNothing;
      if (may_be_samples) find_samples(micro_batches[static_cast<size_t>(report_.micro_batch)]);
    } else {
      add_up(micro_batches);
    }
  }

 private:
  struct Attempt {
    FirstNonfinite first;
    double loss_sum = 0;
  };

  /// Forward and backward of one batch, which adds to the arena's gradients.
  Attempt attempt(const data::Batch& batch) {
    dog_ = Watchdog();
    const nn::WatchScope scope(task_.model(), [&](const nn::Watched& seen) {
      const auto kind = seen.parameter  ? TensorKind::kParameterGradient
                        : seen.backward ? TensorKind::kOutputGradient
                                        : TensorKind::kOutput;
      if (!seen.backward) forward_.emplace(layer_of(seen.module + "."), forward_.size());
      dog_.see(kind, seen.module, seen.values);
    });
    const kernels::ComputeScope arithmetic(report_.compute);
    const Prepared prepared = preparation_.now(batch);
    const auto losses = task_.loss(prepared, report_.context).losses;
    const torch::Tensor loss = objective(losses, report_.divisors);
    dog_.see(TensorKind::kOutput, "loss", loss);
    // As in an update: of several losses all that leads to this one may be frozen.
    if (losses.size() == 1 || loss.requires_grad()) (loss * report_.loss_scale).backward();
    return {dog_.first(), sum_of(losses)};
  }

  void look_at_weights() {
    for (const auto& slot : arena_.slots()) {
      const int64_t count = count_nonfinite(optim::Arena::view(arena_.params(), slot));
      if (count > 0) report_.weights.push_back({slot.name, count});
    }
    for (const auto& buffer : arena_.buffers()) {
      const int64_t count = buffer.is_parameter ? count_nonfinite(buffer.values) : 0;
      if (count > 0) report_.weights.push_back({buffer.name, count});
    }
    if (report_.context.carry == nullptr) return;
    for (const auto& state : report_.context.carry->states()) {
      const int64_t count = count_nonfinite(state.values);
      if (count > 0) report_.weights.push_back({"carry/" + state.name, count});
    }
  }

  void one_by_one(const data::Batch& batch) {
    arena_.zero_grads();
    Attempt made = attempt(batch);
    // An operator may have written to the arena past autograd.
    if (made.first.kind == TensorKind::kNone) made.first = in_arena(TensorKind::kParameterGradient);
    const bool finite = made.first.kind == TensorKind::kNone;
    report_.micro_batches.push_back({batch.sample_ids, made.loss_sum, finite});
    if (finite || report_.found()) return;
    report_.first = made.first;
    report_.micro_batch = static_cast<int64_t>(report_.micro_batches.size()) - 1;
    look_at_gradients();
  }

  // Each micro-batch is finite; their sum need not be.
  void add_up(const std::vector<data::Batch>& micro_batches) {
    arena_.zero_grads();
    for (const auto& batch : micro_batches) attempt(batch);
    report_.first = in_arena(TensorKind::kSum);
    look_at_gradients();
  }

  FirstNonfinite in_arena(TensorKind kind) {
    for (const auto& slot : arena_.slots()) {
      if (!all_finite(optim::Arena::view(arena_.grads(), slot))) {
        return {.kind = kind, .name = slot.name, .last_finite = {}};
      }
    }
    return {};
  }

  void find_samples(const data::Batch& batch) {
    for (int64_t i = 0; i < batch.num_sequences(); ++i) {
      arena_.zero_grads();
      const bool finite = attempt(data::part(batch, i, i + 1)).first.kind == TensorKind::kNone &&
                          all_finite(arena_.grads());
      if (!finite) report_.samples.push_back(batch.sample_ids[static_cast<size_t>(i)]);
    }
  }

  void look_at_gradients() {
    auto& list = report_.gradients;
    for (const auto& slot : arena_.slots()) {
      const torch::Tensor values = optim::Arena::view(arena_.grads(), slot);
      const torch::Tensor sizes = torch::nan_to_num(values.abs(), 0.0, 0.0, 0.0);
      list.push_back({slot.name, sizes.max().item<double>(), count_nonfinite(values)});
    }
    report_.layers = by_layer(list);
    std::stable_sort(list.begin(), list.end(), larger_peak);
    if (list.size() > kGradientsShown) list.resize(kGradientsShown);
  }

  // A tied parameter is its first owner's, as in the arena.
  std::vector<GradientPeak> by_layer(const std::vector<GradientPeak>& parameters) {
    std::map<std::string, const GradientPeak*> peaks;
    for (const auto& peak : parameters) peaks.emplace(peak.name, &peak);
    std::vector<GradientPeak> layers;
    std::map<std::string, size_t> places;
    for (const auto& item : task_.model().named_parameters()) {
      const auto found = peaks.find(item.key());
      if (found == peaks.end()) continue;
      const std::string layer = layer_of(item.key());
      const auto [place, is_new] = places.emplace(layer, layers.size());
      if (is_new) layers.push_back({.name = layer});
      GradientPeak& sum = layers[place->second];
      sum.max_abs = std::max(sum.max_abs, found->second->max_abs);
      sum.num_nonfinite += found->second->num_nonfinite;
    }
    return in_forward_order(std::move(layers));
  }

  // Modules are registered in another order than they compute in. What told nothing in forward
  // stays behind the layer that was registered before it.
  std::vector<GradientPeak> in_forward_order(std::vector<GradientPeak> layers) const {
    std::map<std::string, size_t> places;
    size_t place = 0;
    for (const auto& layer : layers) {
      if (const auto told = forward_.find(layer.name); told != forward_.end()) place = told->second;
      places.emplace(layer.name, place);
    }
    std::stable_sort(layers.begin(), layers.end(), [&](const auto& a, const auto& b) {
      return places.at(a.name) < places.at(b.name);
    });
    return layers;
  }

  Task& task_;
  optim::Arena& arena_;
  NonfiniteReport& report_;
  const Preparation preparation_;
  KeptBuffers kept_;
  DenseLookups dense_;
  std::map<std::string, size_t> forward_;  // layers by their first output
  Watchdog dog_;
  ParameterHooks hooks_;
};

}  // namespace

bool larger_peak(const GradientPeak& a, const GradientPeak& b) {
  if ((a.num_nonfinite > 0) != (b.num_nonfinite > 0)) return a.num_nonfinite > 0;
  return a.max_abs > b.max_abs;
}

std::string layer_of(const std::string& parameter) {
  const std::vector<std::string> parts = split(parameter, '.');
  const auto is_index = [](const std::string& part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char character) {
      return std::isdigit(character) != 0;
    });
  };
  auto end = parts.end() - 1;  // without the parameter's own name
  const auto index = std::find_if(parts.begin(), end, is_index);
  if (index != end) end = index + 1;
  return end == parts.begin() ? "model"
                              : join(std::span<const std::string>(parts.begin(), end), ".");
}

NonfiniteReport examine(Task& task, optim::Arena& arena,
                        const std::vector<data::Batch>& micro_batches, const StepContext& context,
                        double loss_scale, kernels::Compute compute,
                        const std::vector<double>& divisors) {
  NonfiniteReport report{
      .context = context,
      .loss_scale = loss_scale,
      .compute = compute,
      .divisors = divisors.empty() ? divisors_of(task, micro_batches) : divisors};
  Examiner(task, arena, report).run(micro_batches);
  return report;
}

}  // namespace stretto::train
