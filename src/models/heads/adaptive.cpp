#include "models/heads/adaptive.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "kernels/gemm/packed_weights.h"
#include "kernels/quantised/quantised.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// The parameters of a cluster with matrices of its own.
struct TailImpl : torch::nn::Module {
  TailImpl(const nn::Init& init, int64_t width, int64_t narrow, int64_t tokens,
           const std::optional<nn::InitRule>& first_rows)
      : down(register_module("down", nn::Linear(init.child("down"), width, narrow,
                                                nn::LinearOptions{.bias = false}))),
        weight(register_parameter(
            "weight", nn::Embedding(init, tokens, narrow, /*pad=*/-1, first_rows)->weight)) {}

  nn::Linear down;
  at::Tensor weight;
};

/// The sum of 1 / (r + 1) over r in [begin, end), within a hundredth.
double zipf_mass(int64_t begin, int64_t end) {
  const auto harmonic = [](int64_t count) {
    if (count == 0) return 0.0;
    const auto n = static_cast<double>(count);
    return std::log(n) + 0.5772156649 + 0.5 / n - 1 / (12 * n * n);
  };
  return harmonic(end) - harmonic(begin);
}

}  // namespace

AdaptiveHead::AdaptiveHead(const AdaptiveHeadSetup& setup, nn::OutputLosses losses)
    : num_classes_(setup.num_classes),
      shortlist_(setup.groups.is_on() ? setup.groups.begin_of(0) : 0),
      tied_(setup.tied),
      matrix_name_(setup.matrix_name),
      losses_(std::move(losses)) {
  const std::string problem = setup.groups.problem(num_classes_);
  TORCH_CHECK(problem.empty(), "[adaptive_head] ", num_classes_, " tokens: ", problem);
  for (size_t i = 0; i < setup.groups.cutoffs.size(); ++i) {
    groups_.push_back(
        {.begin = setup.groups.begin_of(i), .end = setup.groups.end_of(i, num_classes_)});
  }
  add_matrices(setup);
}

void AdaptiveHead::add_matrices(const AdaptiveHeadSetup& setup) {
  const auto clusters = static_cast<int64_t>(groups_.size());
  if (tied_) {
    TORCH_CHECK(tied_->weight.size(1) == setup.width && tied_->weight.size(0) >= num_classes_,
                "[adaptive_head] a tied table must be at least [", num_classes_, ", ", setup.width,
                "], got ", tied_->weight.sizes());
    const nn::InitRule rule = setup.first_rows.value_or(nn::normal_of_width(setup.width));
    clusters_ =
        register_parameter("clusters", setup.init.matrix("clusters", clusters, setup.width, rule));
    return;
  }
  const nn::Embedding head(setup.init, shortlist_ + clusters, setup.width, /*pad=*/-1,
                           setup.first_rows);
  weight_ = register_parameter("weight", head->weight);
  torch::nn::ModuleList tails;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto tail = std::make_shared<TailImpl>(setup.init.child("tails").child(std::to_string(i)),
                                                 setup.width, setup.groups.width_of(i, setup.width),
                                                 groups_[i].size(), setup.first_rows);
    groups_[i].down = tail->down;
    groups_[i].weight = tail->weight;
    tails->push_back(tail);
  }
  register_module("tails", tails);
}

AdaptiveHead::Matrices AdaptiveHead::matrices() const {
  const at::Tensor whole = nn::watch_use(matrix_name_, kernels::dense_weight(matrix()));
  Matrices all{.head = whole, .tails = {}};
  if (!tied_) {
    for (const Cluster& cluster : groups_) all.tails.push_back(cluster.weight);
    return all;
  }
  // One cut, whose backward makes one table; a narrow for each part would make as many.
  std::vector<int64_t> sizes{shortlist_};
  for (const Cluster& cluster : groups_) sizes.push_back(cluster.size());
  sizes.push_back(whole.size(0) - num_classes_);
  const std::vector<at::Tensor> parts = whole.split_with_sizes(sizes);
  all.head = tied_head(parts.front());
  all.tails.assign(parts.begin() + 1, parts.end() - 1);
  return all;
}

// While weights are laid out for many products, this copy is made once, too: a new one for each
// product would be laid out and kept each time.
at::Tensor AdaptiveHead::tied_head(const at::Tensor& shortlist) const {
  const auto joined = [&] { return at::cat({shortlist, clusters_}); };
  auto* kept = at::GradMode::is_enabled() ? nullptr : kernels::PackedWeightsScope::current();
  return kept != nullptr ? kept->made_of(clusters_, joined) : joined();
}

at::Tensor AdaptiveHead::projected(const Cluster& cluster, const at::Tensor& rows) {
  return cluster.down ? cluster.down->forward(rows) : rows;
}

kernels::CrossEntropy AdaptiveHead::loss(const at::Tensor& rows, const HeadTargets& targets) {
  TORCH_CHECK(losses_.one && !targets.of_pairs, "[adaptive_head] ",
              targets.of_pairs ? "has no loss of pairs" : "was built without a loss");
  const Matrices all = matrices();
  at::Tensor of_head = targets.labels;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const at::Tensor inside =
        targets.labels.ge(groups_[i].begin).logical_and(targets.labels.lt(groups_[i].end));
    of_head = of_head.masked_fill(inside, shortlist_ + static_cast<int64_t>(i));
  }
  // A target beyond the vocabulary is none of the head's classes, so that it is refused.
  of_head = of_head.masked_fill(targets.labels.ge(num_classes_), num_classes_);
  kernels::CrossEntropy sums = losses_.one(rows, all.head, of_head, all.head.size(0), {}, 0);
  sums.right_sum = at::Tensor();
  for (size_t i = 0; i < groups_.size(); ++i) {
    add_cluster(groups_[i], all.tails[i], rows, targets.labels, sums);
  }
  return sums;
}

void AdaptiveHead::add_cluster(const Cluster& cluster, const at::Tensor& tail,
                               const at::Tensor& rows, const at::Tensor& labels,
                               kernels::CrossEntropy& sums) const {
  const at::Tensor chosen =
      labels.ge(cluster.begin).logical_and(labels.lt(cluster.end)).nonzero().squeeze(1);
  if (chosen.size(0) == 0) {
    // Every matrix has its gradient in every micro-batch: of nothing a zero.
    const at::Tensor own =
        projected(cluster, rows.narrow(0, 0, std::min<int64_t>(rows.size(0), 1)));
    sums.loss_sum = sums.loss_sum + 0 * (own.sum() + tail.narrow(0, 0, 1).sum());
    return;
  }
  const kernels::CrossEntropy own =
      losses_.one(projected(cluster, rows.index_select(0, chosen)), tail,
                  labels.index_select(0, chosen) - cluster.begin, cluster.size(), {}, 0);
  sums.loss_sum = sums.loss_sum + own.loss_sum;
  sums.nll_sum = sums.nll_sum + own.nll_sum;
  if (sums.token_nll.defined()) {
    sums.token_nll = sums.token_nll.index_add(0, chosen, own.token_nll);
  }
}

at::Tensor AdaptiveHead::log_probs(const at::Tensor& rows) {
  const Matrices all = matrices();
  const auto of = [](const at::Tensor& x, const at::Tensor& weight) {
    return at::log_softmax(kernels::linear(x, weight).to(at::kFloat), 1);
  };
  const at::Tensor head = of(rows, all.head);
  std::vector<at::Tensor> parts{head.narrow(1, 0, shortlist_)};
  for (size_t i = 0; i < groups_.size(); ++i) {
    const at::Tensor of_cluster = head.narrow(1, shortlist_ + static_cast<int64_t>(i), 1);
    parts.push_back(of(projected(groups_[i], rows), all.tails[i]) + of_cluster);
  }
  return at::cat(parts, 1);
}

double AdaptiveHead::operations() const {
  const auto clusters = static_cast<int64_t>(groups_.size());
  double sum = 2 * static_cast<double>((shortlist_ + clusters) * matrix().size(1));
  for (const Cluster& cluster : groups_) {
    const double share = zipf_mass(cluster.begin, cluster.end) / zipf_mass(0, num_classes_);
    const int64_t own = cluster.down ? cluster.down->weight.numel() + cluster.weight.numel()
                                     : cluster.size() * matrix().size(1);
    sum += 2 * share * static_cast<double>(own);
  }
  return sum;
}

}  // namespace stretto::models
