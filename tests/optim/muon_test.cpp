#include "optim/muon.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/gemm/gemm.h"
#include "optim/muon_tensors.h"
#include "optim/orthogonal.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::Numbers;
using testing::Reference;
using testing::Toy;

/// Matrices of these shapes, with numbers in them and in their gradients.
struct Matrices : torch::nn::Module {
  explicit Matrices(const std::vector<std::vector<int64_t>>& shapes) {
    for (const auto& shape : shapes) {
      const std::string name = "matrix_" + std::to_string(tensors.size());
      const torch::Tensor values = torch::arange(shape[0] * shape[1], torch::kFloat).sin();
      tensors.push_back(register_parameter(name, values.view(shape)));
    }
  }
  void fill_gradients(int step) {
    for (const torch::Tensor& tensor : tensors) {
      tensor.grad().copy_(
          torch::arange(tensor.numel(), torch::kFloat).mul(0.7 + step).cos().view_as(tensor));
    }
  }
  std::vector<torch::Tensor> tensors;
};

// --- a plain reference in double
// ------------------------------------------------------------------

struct PlainMatrix {
  int64_t rows = 0, columns = 0;
  Numbers values;

  double& at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(row * columns + column)];
  }
  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

PlainMatrix plain_zeros(int64_t rows, int64_t columns) {
  return {rows, columns, Numbers(static_cast<size_t>(rows * columns))};
}

PlainMatrix plain_transposed(const PlainMatrix& x) {
  PlainMatrix y = plain_zeros(x.columns, x.rows);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.columns; ++c) y.at(c, r) = x.at(r, c);
  }
  return y;
}

PlainMatrix plain_product(const PlainMatrix& a, const PlainMatrix& b) {
  PlainMatrix y = plain_zeros(a.rows, b.columns);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t c = 0; c < b.columns; ++c) y.at(r, c) += a.at(r, k) * b.at(k, c);
    }
  }
  return y;
}

/// a x + b y
PlainMatrix plain_sum(double a, const PlainMatrix& x, double b, const PlainMatrix& y) {
  PlainMatrix z = x;
  for (size_t i = 0; i < z.values.size(); ++i) z.values[i] = a * x.values[i] + b * y.values[i];
  return z;
}

PlainMatrix plain_orthogonal(const PlainMatrix& matrix, int64_t iterations = 5) {
  PlainMatrix x = matrix.rows > matrix.columns ? plain_transposed(matrix) : matrix;
  const double norm = testing::norm_of(x.values);
  if (norm == 0) return matrix;
  for (double& value : x.values) value /= norm;
  for (int64_t i = 0; i < iterations; ++i) {
    const PlainMatrix a = plain_product(x, plain_transposed(x));
    x = plain_sum(3.4445, x, 1,
                  plain_product(plain_sum(-4.7750, a, 2.0315, plain_product(a, a)), x));
  }
  return matrix.rows > matrix.columns ? plain_transposed(x) : x;
}

/// Rows [from, from + rows) of a matrix.
PlainMatrix plain_rows(const Numbers& values, int64_t from, int64_t rows, int64_t columns) {
  const auto first = values.begin() + from * columns;
  return {rows, columns, Numbers(first, first + rows * columns)};
}

/// What brings elements [from, to) to a norm.
double plain_factor(const Numbers& values, int64_t from, int64_t to, double norm) {
  return norm / testing::norm_of({values.begin() + from, values.begin() + to});
}

/// The rule of one tensor: vectors are AdamW's at a rate `adam_factor` times that of matrices.
/// @param parts  rows of each map in the matrix of 70 rows
testing::Rule muon_rule(const OptimOptions& o, double adam_factor = 1,
                        const std::vector<int64_t>& parts = {70}) {
  return [=](Reference& t, const Numbers& g, double lr, int step) {
    const double mu = t.shape.size() < 2 ? o.beta1 : o.muon_momentum;
    for (size_t i = 0; i < g.size(); ++i) t.m[i] = mu * t.m[i] + (1 - mu) * g[i];
    if (t.shape.size() < 2) {
      for (size_t i = 0; i < g.size(); ++i) {
        t.v[i] = o.beta2 * t.v[i] + (1 - o.beta2) * g[i] * g[i];
        t.p[i] -= adam_factor * lr * t.m[i] / (1 - std::pow(o.beta1, step)) /
                  (std::sqrt(t.v[i] / (1 - std::pow(o.beta2, step))) + o.epsilon);
      }
      return;
    }
    Numbers n = t.m;
    for (size_t i = 0; i < n.size() && o.muon_nesterov; ++i) n[i] = (1 - mu) * g[i] + mu * n[i];
    const int64_t all = t.shape.front(), columns = static_cast<int64_t>(n.size()) / all;
    int64_t from = 0;
    for (const int64_t rows : all == 70 ? parts : std::vector<int64_t>{all}) {
      const PlainMatrix change =
          plain_orthogonal(plain_rows(n, from, rows, columns), o.muon_iterations);
      const double factor = o.muon_fixed_norm
                                ? plain_factor(t.p, from * columns, (from + rows) * columns,
                                               std::sqrt(static_cast<double>(rows)))
                                : 1;
      const double r = static_cast<double>(rows), c = static_cast<double>(columns);
      const double scale =
          o.muon_scale == "rms" ? 0.2 * std::sqrt(std::max(r, c)) : std::sqrt(std::max(1.0, r / c));
      for (size_t i = 0; i < change.values.size(); ++i) {
        double& p = t.p[static_cast<size_t>(from * columns) + i];
        p = p * factor * (1 - lr * t.decay) - lr * scale * change.values[i];
      }
      from += rows;
    }
  };
}

TEST(Muon, TwelveStepsEqualThePlainReference) {
  for (const std::string scale : {"rms", "spectral"}) {
    for (const bool nesterov : {true, false}) {
      const OptimOptions options{
          .name = "muon", .weight_decay = 0.1, .muon_nesterov = nesterov, .muon_scale = scale};
      testing::expect_steps(options, muon_rule(options));
    }
  }
}

TEST(Muon, AdamsTensorsHaveARateOfTheirOwn) {
  const OptimOptions options{.name = "muon", .lr = 0.02, .muon_adam_lr = 0.005};
  testing::expect_steps(options, muon_rule(options, 0.25));
}

TEST(Muon, MatricesMayHaveAFixedNormAndOtherIterations) {
  const OptimOptions options{.name = "muon", .muon_fixed_norm = true, .muon_iterations = 3};
  testing::expect_steps(options, muon_rule(options));
}

// airbench's recipe: Nesterov's momentum for vectors, whose decay is added to the gradient.
TEST(Muon, SgdMayStepTheOthers) {
  OptimOptions options{.name = "muon", .lr = 0.02, .muon_adam_lr = 0.005};
  options.muon_others = "sgd";
  options.muon_other_momentum = 0.85;
  options.groups = {"bias lr_scale=2 weight_decay=0.1"};
  testing::expect_steps(options, [matrix_rule = muon_rule(options)](Reference& t, const Numbers& g,
                                                                    double lr, int step) {
    if (t.shape.size() >= 2) return matrix_rule(t, g, lr, step);
    const bool is_bias = t.p.size() == 7;
    const double rate = 0.25 * lr * (is_bias ? 2 : 1), decay = is_bias ? 0.1 : 0;
    for (size_t i = 0; i < g.size(); ++i) {
      const double d = g[i] + decay * t.p[i];
      t.m[i] = 0.85 * t.m[i] + d;
      t.p[i] -= rate * (d + 0.85 * t.m[i]);
    }
  });
}

TEST(Muon, SgdKeepsNoSecondMoment) {
  Toy toy;
  const Arena arena(toy);
  OptimOptions options{.name = "muon"};
  options.muon_others = "sgd";
  EXPECT_EQ(make_optimizer(options, arena)->state().at(1).values.numel(), 0);
}

TEST(Muon, AMatrixThatMergesMapsIsSteppedMapByMap) {
  for (const auto& [split, fixed] :
       {std::pair{true, false}, std::pair{false, false}, std::pair{true, true}}) {
    const OptimOptions options{.name = "muon", .muon_split = split, .muon_fixed_norm = fixed};
    const std::vector<int64_t> parts{10, 20, 40};
    Toy toy;
    Arena arena(toy);
    arena.set_part_rows(toy.tensors[1], parts);
    const auto optimizer = make_optimizer(options, arena);
    auto expected = testing::references(toy, 0)[1];
    const auto rule = muon_rule(options, 1, split ? parts : std::vector<int64_t>{70});
    for (int step = 1; step <= 3; ++step) {
      toy.fill_gradients(step);
      rule(expected, testing::numbers_of(toy.tensors[1].grad()), 0.02, step);
      optimizer->step(arena, {.lr = 0.02, .number = step});
    }
    const Numbers got = testing::numbers_of(toy.tensors[1]);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected.p[i], 3e-5) << "split " << split << ", element " << i;
    }
  }
}

// --- the iteration ------------------------------------------------------------------------------

TEST(Orthogonalised, BringsSingularValuesNearToOne) {
  torch::manual_seed(3);
  for (const auto& shape : std::vector<std::vector<int64_t>>{{20, 50}, {50, 20}, {1, 7}}) {
    const torch::Tensor matrix = torch::randn(shape);
    const auto before = matrix.clone();
    for (const auto compute : {kernels::Compute::kFp32, kernels::Compute::kBf16}) {
      const torch::Tensor values =
          torch::linalg_svdvals(orthogonalised(matrix, compute).contiguous());
      EXPECT_GT(values.min().item<float>(), 0.6) << torch::IntArrayRef(shape);
      EXPECT_LT(values.max().item<float>(), 1.3) << torch::IntArrayRef(shape);
    }
    EXPECT_TRUE(torch::equal(matrix, before));
  }
}

TEST(Orthogonalised, DoesNotDependOnTheScale) {
  torch::manual_seed(4);
  const torch::Tensor matrix = torch::randn({9, 12});
  const torch::Tensor one = orthogonalised(matrix, kernels::Compute::kFp32);
  for (const double scale : {1e-12, 1e12}) {
    const torch::Tensor other = orthogonalised(matrix * scale, kernels::Compute::kFp32);
    EXPECT_TRUE(torch::allclose(one, other, 1e-4, 1e-4)) << scale;
  }
  const torch::Tensor zero = orthogonalised(torch::zeros({3, 2}), kernels::Compute::kFp32);
  EXPECT_TRUE(torch::equal(zero, torch::zeros({3, 2})));
}

TEST(Orthogonalised, TheHalfTypeIsNearToFp32) {
  torch::manual_seed(5);
  const torch::Tensor matrix = torch::randn({30, 40});
  const torch::Tensor exact = orthogonalised(matrix, kernels::Compute::kFp32);
  const torch::Tensor half = orthogonalised(matrix, kernels::Compute::kBf16);
  EXPECT_FALSE(torch::equal(exact, half));
  EXPECT_LT((exact - half).norm().item<float>(), 0.3 * exact.norm().item<float>());
}

// --- which tensors ------------------------------------------------------------------------------

TEST(MuonTensors, EmbeddingsHeadsAndVectorsAreAdams) {
  const OptimOptions options;
  for (const char* name :
       {"embedding.weight", "decoder.embedding.weight", "encoder.positions.weight",
        "encoder.segments.weight", "encoder.layers.0.self_attention.relative_keys.weight",
        "decoder.distance_bias.weight", "decoder.layers.2.convolution.filters", "output.weight",
        "outputs.de.weight", "head.output.weight", "head.dense.weight"}) {
    EXPECT_FALSE(has_orthogonal_steps(options, {name})) << name;
  }
  for (const char* name :
       {"encoder.layers.0.self_attention.qkv.weight", "decoder.layers.1.ffn.down.weight",
        "encoder.layers.0.self_attention.qkv.lora_a", "decoder.layers.0.convolution.filters.weight",
        "encoder.layers.0.forward.hidden.weight", "decoder.output.weight"}) {
    EXPECT_TRUE(has_orthogonal_steps(options, {name})) << name;
    EXPECT_FALSE(has_orthogonal_steps(options, {name, /*is_vector=*/true})) << name;
  }
  const OptimOptions own{.muon_adam_tensors = {"*.down.weight"}};
  EXPECT_TRUE(has_orthogonal_steps(own, {"embedding.weight"}));
  EXPECT_FALSE(has_orthogonal_steps(own, {"decoder.layers.1.ffn.down.weight"}));
}

TEST(Muon, StepsNamedMatricesAsAdamwDoes) {
  Toy mixed, plain;
  Arena arena(mixed), reference(plain);
  const auto optimizer =
      make_optimizer({.name = "muon", .weight_decay = 0.1, .muon_adam_tensors = {"large"}}, arena);
  const auto adamw = make_optimizer({.name = "adamw", .weight_decay = 0.1}, reference);
  for (int step = 1; step <= 3; ++step) {
    mixed.fill_gradients(step);
    plain.fill_gradients(step);
    optimizer->step(arena, {.lr = 0.01, .number = step});
    adamw->step(reference, {.lr = 0.01, .number = step});
  }
  for (const size_t tensor : {size_t{1}, size_t{3}, size_t{4}}) {
    EXPECT_TRUE(torch::equal(mixed.tensors[tensor], plain.tensors[tensor])) << tensor;
  }
  EXPECT_FALSE(torch::equal(mixed.tensors[0], plain.tensors[0]));
}

TEST(Muon, MatricesHaveNoSecondMoment) {
  Toy toy;
  const Arena arena(toy);
  const auto names = [&](const OptimOptions& options) {
    const auto state = make_optimizer(options, arena)->state();
    EXPECT_TRUE(state.at(0).held.is_all());
    int64_t elements = 0;
    std::vector<std::string> found;
    for (const auto& slot : slots_in(state.at(1).held, arena.slots())) {
      EXPECT_EQ(slot.offset % 16, 0);
      found.push_back(slot.name);
      elements += (slot.numel + 15) / 16 * 16;
    }
    EXPECT_EQ(state.at(1).name, "exp_avg_sq");
    EXPECT_EQ(state.at(1).values.numel(), elements);
    return found;
  };
  EXPECT_EQ(names({.name = "muon"}), (std::vector<std::string>{"bias", "gamma"}));
  EXPECT_EQ(names({.name = "muon", .muon_adam_tensors = {"large"}}),
            (std::vector<std::string>{"large", "bias", "gamma"}));
  EXPECT_EQ(names({.name = "adamw"}),
            (std::vector<std::string>{"small", "large", "cube", "bias", "gamma"}));
}

TEST(Muon, APatternThatMatchesNothingIsRefused) {
  Toy toy;
  const Arena arena(toy);
  try {
    make_optimizer({.name = "muon", .muon_adam_tensors = {"lage"}}, arena);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(error.message().find("optim.muon_adam_tensors: `lage` matches no parameter"),
              std::string::npos)
        << error.message();
  }
}

TEST(Muon, FrozenMatricesStay) {
  Toy toy;
  toy.tensors[1].set_requires_grad(false);
  const auto before = toy.tensors[1].clone();
  Arena arena(toy);
  arena.set_part_rows(toy.tensors[1], {30, 40});  // it has no slot
  const auto optimizer = make_optimizer({.name = "muon", .weight_decay = 0.1}, arena);
  arena.grads().fill_(0.5);
  const auto small = toy.tensors[0].detach().clone();
  optimizer->step(arena, {.lr = 0.1, .number = 1});
  EXPECT_TRUE(torch::equal(toy.tensors[1], before));
  EXPECT_FALSE(torch::equal(toy.tensors[0], small));
}

TEST(Muon, AMatrixWithoutGradientDecaysAlone) {
  Toy toy;
  Arena arena(toy);
  const auto before = toy.tensors[1].detach().clone();
  make_optimizer({.name = "muon", .weight_decay = 0.1}, arena)
      ->step(arena, {.lr = 0.5, .number = 1});
  EXPECT_TRUE(torch::allclose(toy.tensors[1], before * 0.95, 1e-6, 1e-7));
}

// Small matrices have a thread each, the largest one all of them.
TEST(Muon, BitsDoNotDependOnTheNumberOfThreads) {
  const kernels::gemm::OwnProducts own_products;
  const int threads_before = torch::get_num_threads();
  std::vector<torch::Tensor> found;
  for (const int threads : {1, 2, 5}) {
    torch::set_num_threads(threads);
    Matrices model({{64, 48}, {1040, 1040}, {48, 200}, {200, 48}, {96, 96}, {70, 33}});
    Arena arena(model);
    const auto optimizer = make_optimizer({.name = "muon", .muon_iterations = 2}, arena);
    for (int step = 1; step <= 2; ++step) {
      model.fill_gradients(step);
      optimizer->step(arena, {.lr = 0.1, .number = step});
    }
    found.push_back(arena.params().detach().clone());
  }
  torch::set_num_threads(threads_before);
  EXPECT_TRUE(torch::equal(found[0], found[1]));
  EXPECT_TRUE(torch::equal(found[0], found[2]));
}

TEST(Muon, RefusesASliceWithoutTheOthers) {
  Toy toy;
  Arena arena(toy);
  const auto optimizer = make_optimizer({.name = "muon"}, arena, {16, 1000});
  EXPECT_THROW(optimizer->step(arena, {.lr = 0.1}), c10::Error);
}

// Whoever has no part of a matrix gathers it with the others, and forgets it.
TEST(Muon, EveryProcessGathersTheMatricesThatSlicesCut) {
  Toy toy;
  Arena arena(toy);
  const auto& large = arena.slots()[1];
  const int64_t middle = large.offset + 320;
  const std::vector<int64_t> begins{0, middle, arena.size(), arena.size()};
  for (size_t rank = 0; rank < 3; ++rank) {
    std::vector<std::vector<int64_t>> cuts;
    const auto optimizer =
        make_optimizer({.name = "muon"}, arena, {begins[rank], begins[rank + 1]});
    toy.fill_gradients(1);
    const auto gather = [&](const torch::Tensor& values, std::span<const int64_t> cut) {
      EXPECT_EQ(values.numel(), large.numel);
      cuts.emplace_back(cut.begin(), cut.end());
    };
    optimizer->step(arena, {.lr = 0.1, .slice_begins = begins, .gather_over_ranks = gather});
    EXPECT_EQ(cuts, (std::vector<std::vector<int64_t>>{{0, 320, large.numel, large.numel}}))
        << rank;
  }
}

}  // namespace
}  // namespace stretto::optim
