/// The own kernels that a Transformer's step spends its memory traffic in, forward and backward, at
/// the widths of the base model: GB/s of what each must read and write, its share of the memory's
/// bandwidth, and the time of libtorch's own operators on the same device beside it.
///
///     operators_bench [--device=cuda] [--tokens=65536] [--rounds=7]
///
/// Calls are handed over ten at a time, so that a launch hides behind the one before it (which
/// keeps ten results at once: fewer --tokens where memory is short). Ours and libtorch's take
/// turns; medians of the rounds are printed. On a CPU only fp32 is measured. The output projection
/// and attention do arithmetic rather than move bytes: they have times only, the projection (whose
/// gradients are made in forward) for an eighth of the tokens, attention for sequences of 32.

#include <torch/torch.h>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "benchmarks/bench.h"
#include "kernels/kernels.h"

namespace stretto::kernels {
namespace {

using at::Tensor;
using benchmarks::median, benchmarks::seconds_of;
using Tensors = std::vector<Tensor>;

constexpr int64_t kModel = 512, kInner = 2048, kHeads = 8, kVocab = 32'768, kLength = 32;
constexpr double kDrop = 0.1, kSmoothing = 0.1;
constexpr size_t kCalls = 10;

struct Settings : benchmarks::CommonSettings {
  int64_t tokens = 65'536;

  bool take(std::string_view argument) {
    return CommonSettings::take(argument) || benchmarks::take_number(argument, "--tokens", tokens);
  }
};

/// One operator and what libtorch has in its place; bytes are per call, 0 for operators that are
/// bound by arithmetic.
struct Case {
  const char* name;
  Tensors inputs;  ///< what gradients are taken of
  std::function<Tensor()> ours, libtorch;
  double forward_bytes = 0, backward_bytes = 0;
};

/// The seconds of one call; `work` is told which of the ten it is.
template <class Work>
double seconds_of_call(at::Device device, const Work& work) {
  const auto all = [&] {
    for (size_t i = 0; i < kCalls; ++i) work(i);
  };
  return seconds_of(device, all) / static_cast<double>(kCalls);
}

double bandwidth(const Settings& settings) {
  const at::Device device = settings.device();
  const Tensor a = torch::ones({60'000'000}, device), b = torch::ones_like(a);
  std::vector<double> rates;
  for (int64_t round = 0; round <= settings.rounds; ++round)
    rates.push_back(12.0 * 60e6 / seconds_of_call(device, [&](size_t) { a.add_(b, 0.5); }));
  return median(rates);
}

/// Inputs and operators in one type.
class Operators {
 public:
  Operators(const Settings& settings, at::ScalarType type)
      : options_(at::TensorOptions(settings.device()).dtype(type)),
        n_(settings.tokens / kLength * kLength),
        element_(static_cast<double>(at::elementSize(type))),
        keys_(at::arange(n_, options_.dtype(at::kLong)) * 7919 + 11) {}

  std::vector<Case> all() const {
    return {dropout_add(),
            activation("bias, ReLU, dropout", Activation::kRelu),
            activation("bias, GELU, dropout", Activation::kGelu),
            swiglu(),
            norm(),
            embedding(),
            projection(),
            attention("self_attention", 0),
            attention("self_attention, dropout of weights", kDrop)};
  }

 private:
  Tensor leaf(at::IntArrayRef sizes) const {
    return torch::randn(sizes, options_).requires_grad_();
  }
  Dropout drop(double p = kDrop) const { return {.p = p, .key = 0x5eed, .row_keys = keys_}; }
  double bytes(int64_t width, int times) const {
    return static_cast<double>(n_ * width * times) * element_;
  }

  Case dropout_add() const {
    const Tensor x = leaf({n_, kModel}), residual = leaf({n_, kModel});
    return {"dropout_add",
            {x, residual},
            [=, this] { return kernels::dropout_add(x, residual, drop()); },
            [=] { return at::dropout(x, kDrop, true) + residual; },
            bytes(kModel, 3),
            bytes(kModel, 2)};  // the residual's gradient is the one that came
  }

  Case activation(const char* name, Activation kind) const {
    const Tensor x = leaf({n_, kInner}), bias = leaf({kInner});
    return {name,
            {x, bias},
            [=, this] { return bias_activation_dropout(x, bias, kind, drop()); },
            [=] {
              const Tensor y = x + bias;
              return at::dropout(kind == Activation::kRelu ? at::relu(y) : at::gelu(y), kDrop,
                                 true);
            },
            bytes(kInner, 2),
            bytes(kInner, 3)};  // the gradient and x read, the gradient of x written
  }

  Case swiglu() const {
    const Tensor x = leaf({n_, 2 * kInner});
    return {"SwiGLU, dropout",
            {x},
            [=, this] { return swiglu_dropout(x, drop()); },
            [=] {
              const auto halves = x.chunk(2, 1);
              return at::dropout(at::silu(halves[0]) * halves[1], kDrop, true);
            },
            bytes(kInner, 3),
            bytes(kInner, 5)};
  }

  Case norm() const {
    const Tensor x = leaf({n_, kModel}), weight = leaf({kModel}), bias = leaf({kModel});
    return {"layer_norm",
            {x, weight, bias},
            [=] { return kernels::layer_norm(x, weight, bias); },
            [=] { return at::layer_norm(x, {kModel}, weight, bias); },
            bytes(kModel, 2),
            bytes(kModel, 3)};
  }

  Case embedding() const {
    const Tensor table = leaf({kVocab, kModel}), positions = torch::randn({n_, kModel}, options_);
    const Tensor ids = at::randint(kVocab, {n_}, options_.dtype(at::kLong));
    const double rows = static_cast<double>(kVocab * kModel) * element_;
    return {"embed",
            {table},
            [=] { return embed(table, ids, 22.6, positions); },
            [=] { return at::embedding(table, ids) * 22.6 + positions; },
            bytes(kModel, 3),
            bytes(kModel, 1) + rows};
  }

  Case projection() const {
    const int64_t rows = n_ / 8;
    const Tensor x = leaf({rows, kModel});
    const Tensor weight = (torch::randn({kVocab, kModel}, options_) * 0.04).requires_grad_();
    const Tensor targets = at::randint(kVocab, {rows}, options_.dtype(at::kLong));
    return {"linear_cross_entropy",
            {x, weight},
            [=] { return linear_cross_entropy(x, weight, targets, kSmoothing, kVocab).loss_sum; },
            [=] {
              return at::cross_entropy_loss(at::linear(x, weight), targets, {}, at::Reduction::Sum,
                                            -100, kSmoothing);
            }};
  }

  Case attention(const char* name, double p) const {
    const int64_t sequences = n_ / kLength;
    const Tensor qkv = leaf({n_, 3 * kModel});
    const Offsets offsets{
        .values = at::arange(sequences + 1, options_.dtype(at::kInt)) * static_cast<int>(kLength),
        .max_length = kLength};
    return {name,
            {qkv},
            [=, this] {
              return self_attention(
                  qkv,
                  {.offsets = offsets, .num_heads = kHeads, .causal = true, .dropout = drop(p)});
            },
            [=] {
              const auto parts = qkv.view({sequences, kLength, 3, kHeads, kModel / kHeads})
                                     .permute({2, 0, 3, 1, 4})
                                     .unbind(0);
              return at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, p, true)
                  .transpose(1, 2)
                  .reshape({n_of(qkv), kModel});
            }};
  }
  static int64_t n_of(const Tensor& rows) { return rows.size(0); }

  at::TensorOptions options_;
  int64_t n_;
  double element_;
  Tensor keys_;
};

struct Line {
  const Case& of;
  const char* type;
  const char* phase;
  double bytes;
};

void print(const Line& line, std::vector<double> ours, std::vector<double> theirs, double limit) {
  const double seconds = median(std::move(ours)), other = median(std::move(theirs));
  const std::string rate = line.bytes > 0 ? fixed(line.bytes / seconds / 1e9, 0) : "-";
  const std::string share = line.bytes > 0 ? fixed(100 * line.bytes / seconds / limit, 0) : "-";
  std::printf("%-36s  %-8s  %-8s  %9.3f  %7s  %5s  %9.3f  %5.2fx\n", line.of.name, line.type,
              line.phase, seconds * 1e3, rate.c_str(), share.c_str(), other * 1e3, other / seconds);
  std::fflush(stdout);
}

void measure(const Settings& settings, const Case& one, const char* type, double limit) {
  const at::Device device = settings.device();
  std::vector<double> times[2][2];  // phase, whose
  const std::function<Tensor()>* both[] = {&one.ours, &one.libtorch};
  for (int64_t round = -1; round < settings.rounds; ++round) {  // the first makes ready
    for (int whose = 0; whose < 2; ++whose) {
      Tensors outs(kCalls);
      const double forward = seconds_of_call(device, [&](size_t i) { outs[i] = (*both[whose])(); });
      const Tensor gradient = torch::ones_like(outs[0]);
      const double backward = seconds_of_call(
          device, [&](size_t i) { torch::autograd::grad({outs[i]}, one.inputs, {gradient}); });
      if (round < 0) continue;
      times[0][whose].push_back(forward);
      times[1][whose].push_back(backward);
    }
  }
  print({one, type, "forward", one.forward_bytes}, times[0][0], times[0][1], limit);
  print({one, type, "backward", one.backward_bytes}, times[1][0], times[1][1], limit);
}

void run(const Settings& settings) {
  const double limit = bandwidth(settings);
  std::printf("memory bandwidth %.1f GB/s, %lld tokens\n", limit / 1e9,
              static_cast<long long>(settings.tokens));
  std::printf("%-36s  %-8s  %-8s  %9s  %7s  %5s  %9s  %6s\n", "operator", "type", "phase", "ms",
              "GB/s", "%", "libtorch", "ratio");
  const std::vector<std::pair<at::ScalarType, const char*>> types = {{at::kFloat, "fp32"},
                                                                     {at::kBFloat16, "bf16"}};
  for (const auto& [type, name] : types) {
    if (type != at::kFloat && !settings.cuda) continue;
    const Operators operators(settings, type);
    for (const Case& one : operators.all()) measure(settings, one, name, limit);
  }
}

}  // namespace
}  // namespace stretto::kernels

int main(int argc, char** argv) {
  using namespace stretto;
  kernels::run(benchmarks::read_settings<kernels::Settings>(
      argc, argv, "operators_bench [--device=cuda] [--tokens=N] [--rounds=R]"));
}
