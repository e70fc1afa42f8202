/// Each fused kernel of src/kernels beside libtorch's own operators, at the sizes of a
/// small translation model: N = 3600 tokens in sequences of 8 to 25, D = 256, F = 1024, H = 4,
/// V = 8000, dropout 0.1, fp32 on the CPU.
///
///     cmake --preset release -DSTRETTO_BENCHMARKS=ON
///     cmake --build build/release --target kernels_bench
///     build/release/kernels_bench --threads=2 --benchmark_filter=attention
///
/// A name is kernel/shape/phase/library. "forward" records the graph, as in training; "backward"
/// is the backward pass of a graph made a moment before, which is not timed. The column Time is
/// what is measured (wall clock); the column CPU counts the untimed parts too. Items are real
/// tokens, so libtorch's padding counts for nothing; FLOP/s appears where a product dominates, and
/// bytes are what an update must read and write. Inputs come from fixed seeds.

#include "benchmarks/kernels_bench.h"

#include <ATen/CPUGeneratorImpl.h>
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/bench.h"
#include "kernels/compute.h"
#include "kernels/gemm/gemm.h"
#include "kernels/kernels.h"
#include "kernels/optimizer/steps.h"

namespace stretto::kernels {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int64_t kRows = 3600, kModel = 256, kInner = 1024, kHeads = 4, kVocab = 8000;
constexpr int64_t kShortest = 8, kLongest = 25;
constexpr int64_t kParameters = 10'000'000;
constexpr double kDropout = 0.1, kSmoothing = 0.1;

// --- inputs ------------------------------------------------------------------------------------

Tensor noise(at::IntArrayRef sizes, uint64_t seed, double scale = 1) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat) * scale;
}

Tensor random_ids(int64_t count, uint64_t seed) {
  return at::randint(kVocab, {count}, at::make_generator<at::CPUGeneratorImpl>(seed), at::kLong);
}

Tensor leaf(const Tensor& values) {
  return values.detach().clone().requires_grad_();
}

Dropout site(double p, int64_t rows) {
  return {.p = p, .key = 0x5eedu, .row_keys = at::arange(rows, at::kLong) * 7919 + 11};
}

/// Lengths of sequences that fill `rows` exactly.
std::vector<int64_t> lengths_that_fill(int64_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> lengths;
  while (rows > 0) {
    const int64_t drawn = kShortest + static_cast<int64_t>(random() % (kLongest - kShortest + 1));
    // What is left over must be long enough to be a sequence itself.
    lengths.push_back(rows <= kLongest ? rows : std::min(drawn, rows - kShortest));
    rows -= lengths.back();
  }
  return lengths;
}

std::vector<int64_t> some_lengths(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> lengths(count);
  for (int64_t& length : lengths)
    length = kShortest + static_cast<int64_t>(random() % (kLongest - kShortest + 1));
  return lengths;
}

/// One side of a batch: packed for our kernels, and as the padded batch [B, T] that libtorch wants.
struct Sequences {
  explicit Sequences(const std::vector<int64_t>& lengths)
      : count(static_cast<int64_t>(lengths.size())),
        longest(*std::max_element(lengths.begin(), lengths.end())),
        is_token(at::arange(longest).unsqueeze(0) < at::tensor(lengths).unsqueeze(1)),
        rows(is_token.sum().item<int64_t>()) {
    const Tensor ends = at::tensor(lengths).cumsum(0);
    offsets = {.values = at::cat({at::zeros({1}, at::kLong), ends}).to(at::kInt),
               .max_length = longest};
  }

  /// [N, W] -> [B, T, W] with zeros where there is no token.
  Tensor padded(const Tensor& packed) const {
    Tensor result = at::zeros({count, longest, packed.size(1)}, packed.options());
    result.index_put_({is_token}, packed);
    return result;
  }

  int64_t count, longest;
  Tensor is_token;  ///< bool [B, T]
  int64_t rows;
  Offsets offsets;
};

// --- what is measured --------------------------------------------------------------------------

/// One side of a comparison. `forward` must be differentiable with respect to `leaves`.
struct Subject {
  std::function<Tensor()> forward;
  Tensors leaves;
  int64_t tokens = kRows;
  double flop = 0;  ///< of the timed phase; 0 where memory and not arithmetic sets the pace
};

/// Inputs are made when a benchmark runs, so that a filter does not pay for those it leaves out.
using Make = std::function<Subject()>;

enum class Phase { kForward, kBackward, kBoth };

template <class Work>
double seconds_of(const Work& work) {
  return benchmarks::seconds_of(at::kCPU, work);
}

void measure(benchmark::State& state, const Make& make, Phase phase) {
  const Subject subject = make();
  const Tensor first = subject.forward();
  // A loss starts from 1; everything else from a gradient of the output's shape.
  const Tensor seed = first.dim() == 0 ? at::ones_like(first) : noise(first.sizes(), 99);
  const auto backward = [&](const Tensor& output) {
    benchmark::DoNotOptimize(torch::autograd::grad({output}, subject.leaves, {seed}));
  };
  backward(first);  // warms up, and fails early if there is no graph
  for (auto _ : state) {
    Tensor output;
    const double forward_seconds = seconds_of([&] { output = subject.forward(); });
    double backward_seconds = 0;
    if (phase != Phase::kForward) backward_seconds = seconds_of([&] { backward(output); });
    state.SetIterationTime((phase != Phase::kBackward ? forward_seconds : 0) + backward_seconds);
  }
  state.SetItemsProcessed(state.iterations() * subject.tokens);
  if (subject.flop > 0)
    state.counters["FLOP/s"] =
        benchmark::Counter(subject.flop, benchmark::Counter::kIsIterationInvariantRate);
}

void add(const std::string& name, Phase phase, const Make& ours, const Make& libtorch) {
  for (const auto& [library, make] :
       {std::pair{"/stretto", ours}, std::pair{"/libtorch", libtorch}})
    benchmark::RegisterBenchmark((name + library).c_str(),
                                 [make, phase](auto& state) { measure(state, make, phase); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
}

void add_both_phases(const std::string& name, const Make& ours, const Make& libtorch) {
  add(name + "/forward", Phase::kForward, ours, libtorch);
  add(name + "/backward", Phase::kBackward, ours, libtorch);
}

// --- products ----------------------------------------------------------------------------------

using Linear = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;

enum class Differentiated { kInput, kWeight };

Make make_linear(const Linear& linear, int64_t inputs, int64_t outputs, Differentiated which) {
  return [=]() -> Subject {
    Tensor x = noise({kRows, inputs}, 1);
    Tensor weight = noise({outputs, inputs}, 2, 1 / std::sqrt(static_cast<double>(inputs)));
    const Tensor bias = noise({outputs}, 3);
    Tensor& differentiated = which == Differentiated::kInput ? x : weight;
    differentiated.requires_grad_();
    return {.forward = [=] { return linear(x, weight, bias); },
            .leaves = {differentiated},
            .flop = 2.0 * kRows * static_cast<double>(inputs * outputs)};
  };
}

void add_linear(int64_t inputs, int64_t outputs) {
  const Linear ours = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return kernels::linear(x, w, b);
  };
  const Linear libtorch = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return at::linear(x, w, b);
  };
  const std::string name = "linear/" + std::to_string(inputs) + "to" + std::to_string(outputs);
  const auto pair = [&](const std::string& phase, Phase timed, Differentiated which) {
    add(name + phase, timed, make_linear(ours, inputs, outputs, which),
        make_linear(libtorch, inputs, outputs, which));
  };
  pair("/forward", Phase::kForward, Differentiated::kWeight);
  pair("/dX", Phase::kBackward, Differentiated::kInput);
  pair("/dW", Phase::kBackward, Differentiated::kWeight);
}

/// A product alone, without autograd, in each arithmetic: y, dX and dW have the same FLOP.
void add_product(int64_t rows, int64_t inputs, int64_t outputs) {
  using gemm::Operand;
  struct Which {
    const char* name;
    std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& dy, Compute)> call;
  };
  const std::vector<Which> all{
      {"y",
       [](auto& x, auto& w, auto&, auto c) {
         return gemm::product({x}, {w, true}, {}, c);
       }},
      {"dX", [](auto&, auto& w, auto& dy, auto c) { return gemm::product({dy}, {w}, {}, c); }},
      {"dW", [](auto& x, auto&, auto& dy, auto c) {
         return gemm::product({dy, true}, {x}, {}, c);
       }}};
  for (const Which& which : all)
    for (const auto& [name, compute] :
         {std::pair{"fp32", Compute::kFp32}, std::pair{"bf16", Compute::kBf16},
          std::pair{"fp16", Compute::kFp16}}) {
      const auto run = [=](benchmark::State& state) {
        const Tensor x = noise({rows, inputs}, 1), w = noise({outputs, inputs}, 2);
        const Tensor dy = noise({rows, outputs}, 3);
        const auto call = [&] { benchmark::DoNotOptimize(which.call(x, w, dy, compute)); };
        call();
        for (auto _ : state) state.SetIterationTime(seconds_of(call));
        state.counters["FLOP/s"] =
            benchmark::Counter(2.0 * static_cast<double>(rows * inputs * outputs),
                               benchmark::Counter::kIsIterationInvariantRate);
      };
      const std::string shape =
          std::to_string(rows) + "rows_" + std::to_string(inputs) + "to" + std::to_string(outputs);
      benchmark::RegisterBenchmark(("product/" + shape + "/" + which.name + "/" + name).c_str(),
                                   run)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
}

/// Both phases at once: ours makes the gradients in its forward pass.
void add_loss() {
  using Loss = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;
  const auto make = [](const Loss& loss) -> Make {
    return [loss]() -> Subject {
      const Tensor x = leaf(noise({kRows, kModel}, 1));
      const Tensor table = leaf(noise({kVocab, kModel}, 2, 1 / std::sqrt(double{kModel})));
      const Tensor targets = random_ids(kRows, 3);
      return {.forward = [=] { return loss(x, table, targets); },
              .leaves = {x, table},
              .flop = 3 * 2.0 * kRows * kModel * kVocab};
    };
  };
  add("linear_cross_entropy/256to8000/forward+backward", Phase::kBoth,
      make([](const Tensor& x, const Tensor& table, const Tensor& targets) {
        return linear_cross_entropy(x, table, targets, kSmoothing, kVocab).loss_sum;
      }),
      make([](const Tensor& x, const Tensor& table, const Tensor& targets) {
        return at::cross_entropy_loss(at::linear(x, table), targets, {}, at::Reduction::Sum, -100,
                                      kSmoothing);
      }));
}

// --- attention ---------------------------------------------------------------------------------

/// [B, T, D] -> [B, H, T, D / H].
Tensor heads(const Tensor& x) {
  return x.view({x.size(0), x.size(1), kHeads, kModel / kHeads}).transpose(1, 2);
}

/// softmax(Q K^T / sqrt(D / H)) V on padded batches, as a model on libtorch writes it; `visible` is
/// bool [B, 1, 1, Tk] or undefined when `causal`, which hides padding at the end by itself.
Tensor padded_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& visible,
                        bool causal, double p) {
  const auto mask = visible.defined() ? std::optional<Tensor>(visible) : std::nullopt;
  const Tensor out =
      at::scaled_dot_product_attention(heads(q), heads(k), heads(v), mask, p, causal);
  return out.transpose(1, 2).reshape({q.size(0), q.size(1), kModel});
}

void add_self_attention(const std::string& name, bool causal, double p) {
  const Make ours = [=]() -> Subject {
    const Sequences batch(lengths_that_fill(kRows, 5));
    const Tensor qkv = leaf(noise({kRows, 3 * kModel}, 1));
    const SelfAttention options{
        .offsets = batch.offsets, .num_heads = kHeads, .causal = causal, .dropout = site(p, kRows)};
    return {.forward = [=] { return self_attention(qkv, options); }, .leaves = {qkv}};
  };
  const Make libtorch = [=]() -> Subject {
    const Sequences batch(lengths_that_fill(kRows, 5));
    const Tensor qkv = leaf(batch.padded(noise({kRows, 3 * kModel}, 1)));
    const Tensor visible = causal ? Tensor() : batch.is_token.unsqueeze(1).unsqueeze(1);
    return {.forward =
                [=] {
                  const auto part = qkv.chunk(3, 2);
                  return padded_attention(part[0], part[1], part[2], visible, causal, p);
                },
            .leaves = {qkv}};
  };
  add_both_phases("self_attention/" + name, ours, libtorch);
}

void add_cross_attention(const std::string& name, double p) {
  struct Sides {
    Sequences queries{lengths_that_fill(kRows, 5)};
    Sequences keys{some_lengths(static_cast<size_t>(queries.count), 6)};
  };
  const Make ours = [=]() -> Subject {
    const Sides sides;
    const Tensor q = leaf(noise({kRows, kModel}, 1));
    const Tensor kv = leaf(noise({sides.keys.rows, 2 * kModel}, 2));
    const CrossAttention options{.query_offsets = sides.queries.offsets,
                                 .key_offsets = sides.keys.offsets,
                                 .num_heads = kHeads,
                                 .dropout = site(p, kRows)};
    return {.forward = [=] { return cross_attention(q, kv, options); }, .leaves = {q, kv}};
  };
  const Make libtorch = [=]() -> Subject {
    const Sides sides;
    const Tensor q = leaf(sides.queries.padded(noise({kRows, kModel}, 1)));
    const Tensor kv = leaf(sides.keys.padded(noise({sides.keys.rows, 2 * kModel}, 2)));
    const Tensor visible = sides.keys.is_token.unsqueeze(1).unsqueeze(1);
    return {.forward =
                [=] {
                  const auto part = kv.chunk(2, 2);
                  return padded_attention(q, part[0], part[1], visible, false, p);
                },
            .leaves = {q, kv}};
  };
  add_both_phases("cross_attention/" + name, ours, libtorch);
}

// --- row by row --------------------------------------------------------------------------------

void add_dropout_add() {
  const auto make = [](const std::function<Tensor(const Tensor&, const Tensor&)>& call) -> Make {
    return [call]() -> Subject {
      const Tensor x = leaf(noise({kRows, kModel}, 1)), residual = leaf(noise({kRows, kModel}, 2));
      return {.forward = [=] { return call(x, residual); }, .leaves = {x, residual}};
    };
  };
  const Dropout drop = site(kDropout, kRows);
  add_both_phases("dropout_add/256", make([=](const Tensor& x, const Tensor& residual) {
                    return dropout_add(x, residual, drop);
                  }),
                  make([](const Tensor& x, const Tensor& residual) {
                    return at::dropout(x, kDropout, true) + residual;
                  }));
}

void add_bias_activation(const std::string& name, Activation activation) {
  const auto make = [](const std::function<Tensor(const Tensor&, const Tensor&)>& call) -> Make {
    return [call]() -> Subject {
      const Tensor x = leaf(noise({kRows, kInner}, 1)), bias = leaf(noise({kInner}, 2));
      return {.forward = [=] { return call(x, bias); }, .leaves = {x, bias}};
    };
  };
  const Dropout drop = site(kDropout, kRows);
  add_both_phases("bias_activation_dropout/" + name, make([=](const Tensor& x, const Tensor& bias) {
                    return bias_activation_dropout(x, bias, activation, drop);
                  }),
                  make([=](const Tensor& x, const Tensor& bias) {
                    const Tensor sum = x + bias;
                    return at::dropout(
                        activation == Activation::kRelu ? at::relu(sum) : at::gelu(sum), kDropout,
                        true);
                  }));
}

void add_embed() {
  using Embed = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;
  const auto make = [](const Embed& call) -> Make {
    return [call]() -> Subject {
      const Tensor table = leaf(noise({kVocab, kModel}, 1));
      const Tensor ids = random_ids(kRows, 2), position = noise({kRows, kModel}, 3);
      return {.forward = [=] { return call(table, ids, position); }, .leaves = {table}};
    };
  };
  const double scale = std::sqrt(double{kModel});
  add_both_phases("embed/8000x256",
                  make([=](const Tensor& table, const Tensor& ids, const Tensor& position) {
                    return embed(table, ids, scale, position);
                  }),
                  make([=](const Tensor& table, const Tensor& ids, const Tensor& position) {
                    return at::embedding(table, ids) * scale + position;
                  }));
}

// --- the optimizer -----------------------------------------------------------------------------

constexpr double kRate = 1e-4, kBeta1 = 0.9, kBeta2 = 0.98, kEpsilon = 1e-9;

/// The state of Adam, flat for ours and cut into the tensors of a model for libtorch's.
struct AdamState {
  Tensor params = noise({kParameters}, 1), grads = noise({kParameters}, 2, 0.01);
  Tensor exp_avg = at::zeros({kParameters}), exp_avg_sq = at::zeros({kParameters});
  int64_t step = 0;

  static Tensors pieces(const Tensor& flat) { return flat.split(kModel * kModel); }
};

using Step = std::function<void()>;

Step stretto_adam() {
  return [state = AdamState()]() mutable {
    const auto step = static_cast<double>(++state.step);
    const std::vector<Run<AdamScalars>> all{
        {.begin = 0,
         .end = kParameters,
         .numbers = {.first = moving_average(kBeta1),
                     .second = moving_average(kBeta2),
                     .grad_scale = 1,
                     .coupled_decay = 0,
                     .shrink = 1,
                     .step_size = static_cast<float>(kRate / (1 - std::pow(kBeta1, step))),
                     .inverse_root_correction =
                         static_cast<float>(1 / std::sqrt(1 - std::pow(kBeta2, step))),
                     .epsilon = static_cast<float>(kEpsilon)}}};
    adam_runs(state.params, state.grads, state.exp_avg, state.exp_avg_sq, all);
  };
}

/// The optimizer of libtorch's C++ interface.
Step libtorch_adam() {
  const AdamState state;
  const Tensors grads = AdamState::pieces(state.grads);
  Tensors params;
  for (const Tensor& piece : AdamState::pieces(state.params)) params.push_back(leaf(piece));
  for (size_t i = 0; i < params.size(); ++i) params[i].mutable_grad() = grads[i];
  auto adam = std::make_shared<torch::optim::Adam>(
      params, torch::optim::AdamOptions(kRate).betas({kBeta1, kBeta2}).eps(kEpsilon));
  return [adam] { adam->step(); };
}

/// The operators that PyTorch's Adam(foreach=True) calls, in its order.
Step libtorch_foreach_adam() {
  const AdamState state;
  return [params = AdamState::pieces(state.params), grads = AdamState::pieces(state.grads),
          exp_avg = AdamState::pieces(state.exp_avg),
          exp_avg_sq = AdamState::pieces(state.exp_avg_sq), step = 0]() mutable {
    ++step;
    at::_foreach_lerp_(exp_avg, grads, 1 - kBeta1);
    at::_foreach_mul_(exp_avg_sq, kBeta2);
    at::_foreach_addcmul_(exp_avg_sq, grads, grads, 1 - kBeta2);
    Tensors denominators = at::_foreach_sqrt(exp_avg_sq);
    at::_foreach_div_(denominators, std::sqrt(1 - std::pow(kBeta2, step)));
    at::_foreach_add_(denominators, kEpsilon);
    at::_foreach_addcdiv_(params, exp_avg, denominators, -kRate / (1 - std::pow(kBeta1, step)));
  };
}

/// What PyTorch's Adam(fused=True) calls.
Step libtorch_fused_adam() {
  const AdamState state;
  Tensors params = AdamState::pieces(state.params), steps;
  for (size_t i = 0; i < params.size(); ++i) steps.push_back(at::zeros({}));
  return [params, steps, grads = AdamState::pieces(state.grads),
          exp_avg = AdamState::pieces(state.exp_avg),
          exp_avg_sq = AdamState::pieces(state.exp_avg_sq)] {
    at::_foreach_add_(steps, 1);
    at::_fused_adam_(params, grads, exp_avg, exp_avg_sq, {}, steps, kRate, kBeta1, kBeta2, 0,
                     kEpsilon, false, false);
  };
}

Step stretto_sum_of_squares() {
  return [flat = noise({kParameters}, 1)] { benchmark::DoNotOptimize(sum_of_squares(flat)); };
}

/// What clipping by norm calls.
Step libtorch_norm() {
  return [flat = noise({kParameters}, 1)] {
    benchmark::DoNotOptimize(at::linalg_vector_norm(flat).item<float>());
  };
}

void add_flat(const std::string& name, int64_t bytes_per_number,
              const std::function<Step()>& make) {
  const auto run = [=](benchmark::State& state) {
    const Step step = make();
    step();  // makes the optimizer's state
    for (auto _ : state) state.SetIterationTime(seconds_of(step));
    state.SetBytesProcessed(state.iterations() * kParameters * bytes_per_number);
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMillisecond);
}

void add_flat_kernels() {
  // Parameter and two moments are read and written, the gradient is read: seven fp32 numbers.
  constexpr int64_t kAdamBytes = 28;
  add_flat("adam/10M/stretto", kAdamBytes, stretto_adam);
  add_flat("adam/10M/libtorch", kAdamBytes, libtorch_adam);
  add_flat("adam/10M/libtorch_foreach", kAdamBytes, libtorch_foreach_adam);
  add_flat("adam/10M/libtorch_fused", kAdamBytes, libtorch_fused_adam);
  add_flat("sum_of_squares/10M/stretto", 4, stretto_sum_of_squares);
  add_flat("sum_of_squares/10M/libtorch", 4, libtorch_norm);
}

void add_all() {
  add_linear(kModel, kModel);
  add_linear(kModel, 3 * kModel);
  add_linear(kModel, kInner);
  add_linear(kInner, kModel);
  for (const int64_t rows : {2048, 4096}) {
    add_product(rows, 256, 256);
    add_product(rows, 256, 1024);
    add_product(rows, 512, 512);
    add_product(rows, 512, 2048);
    add_product(rows, 256, 8000);
  }
  add_self_attention("encoder", false, 0);
  add_self_attention("encoder_dropout", false, kDropout);
  add_self_attention("decoder", true, 0);
  add_self_attention("decoder_dropout", true, kDropout);
  add_cross_attention("plain", 0);
  add_cross_attention("dropout", kDropout);
  add_dropout_add();
  add_bias_activation("relu", Activation::kRelu);
  add_bias_activation("gelu", Activation::kGelu);
  add_loss();
  add_embed();
  add_flat_kernels();
  add_convolutions();
}

/// Takes --threads=T out of the arguments; 1 without it, 0 if T is no number above 0.
int64_t take_threads(int& argc, char** argv) {
  int64_t threads = 1;
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!benchmarks::value_of(argument, "--threads")) {
      argv[kept++] = argv[i];
    } else if (!benchmarks::take_number(argument, "--threads", threads)) {
      threads = 0;
    }
  }
  argc = kept;
  return threads;
}

}  // namespace
}  // namespace stretto::kernels

int main(int argc, char** argv) {
  const int64_t threads = stretto::kernels::take_threads(argc, argv);
  if (threads == 0) {
    std::fputs("error: --threads needs a whole number above 0, for instance --threads=2\n", stderr);
    return 2;
  }
  at::set_num_threads(static_cast<int>(threads));
  torch::manual_seed(1);  // libtorch's dropout
  benchmark::AddCustomContext("threads", std::to_string(threads));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  stretto::kernels::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
