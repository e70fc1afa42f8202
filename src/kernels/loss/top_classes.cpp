#include "kernels/loss/top_classes.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/compute.h"
#include "kernels/cpu/table.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/packed_weights.h"
#include "kernels/kernels.h"

namespace stretto::kernels {
namespace {

/// Classes of a block: its logits of 160 rows stay in the second cache, and so does what they are
/// multiplied with. It is the same for any number of rows, so that each block is laid out once.
constexpr int64_t kTopBlock = 1024;
/// Of codes of few bits, for each block of which the rows are rounded anew.
constexpr int64_t kTopCodes = 4 * kTopBlock;
constexpr int64_t kTopScan = 64;
constexpr size_t kTopReserve = 64;
constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

struct TopEntry {
  float logit;
  int64_t place;  // of a class
};

bool is_likelier(const TopEntry& a, const TopEntry& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.place < b.place;
}

/// Whether one of so many logits is above `bound`; compilers make vector instructions of it.
bool any_logit_above(const float* logits, float bound) {
  int found = 0;
  for (int64_t i = 0; i < kTopScan; ++i) found |= static_cast<int>(logits[i] > bound);
  return found != 0;
}

/// What is known of a row: the best so far in a heap whose front is the worst of them, and the sum
/// of exp(logit).
class TopRow {
 public:
  /// @param is_wanted  (place) -> bool; asked of the few that are among the best so far
  template <class IsWanted>
  void look(const float* logits, int64_t first, int64_t size, size_t count,
            const IsWanted& is_wanted) {
    best_.reserve(std::min(count, kTopReserve) + 1);
    for (int64_t i = 0; i < size; ++i) {
      while (i % kTopScan == 0 && i + kTopScan <= size && !any_logit_above(logits + i, worst_)) {
        i += kTopScan;
      }
      if (i == size || !(logits[i] > worst_) || !is_wanted(first + i)) continue;
      best_.push_back({logits[i], first + i});
      std::push_heap(best_.begin(), best_.end(), is_likelier);
      if (best_.size() > count) {
        std::pop_heap(best_.begin(), best_.end(), is_likelier);
        best_.pop_back();
      }
      if (best_.size() == count) worst_ = best_.front().logit;
    }
  }

  /// @param log_sum  of exp(logit) over a block
  void add(double log_sum) {
    if (log_sum <= top_) {
      sum_ += std::exp(log_sum - top_);
    } else {
      sum_ = sum_ * std::exp(top_ - log_sum) + 1;
      top_ = log_sum;
    }
  }

  double log_sum() const { return top_ + std::log(sum_); }

  const std::vector<TopEntry>& sorted() {
    std::sort_heap(best_.begin(), best_.end(), is_likelier);
    return best_;
  }

 private:
  std::vector<TopEntry> best_;
  float worst_ = kNoLogit;
  // The first block makes 0 * 0 + 1 of the sum; one that is no number makes all that follows none.
  double top_ = -std::numeric_limits<double>::infinity(), sum_ = 0;
};

/// Goes through the logits of all rows, block by block.
class TopSearch {
 public:
  /// @param ids  the classes of places, ascending; null: places are classes
  TopSearch(int64_t rows, const TopQuery& query, const std::vector<int64_t>* ids)
      : query_(query), ids_(ids), rows_(static_cast<size_t>(rows)) {
    TORCH_CHECK(query.count > 0, "[kernels] top: a count above 0, got ", query.count);
    TORCH_CHECK(query.never_of_rows.empty() || std::ssize(query.never_of_rows) == rows,
                "[kernels] top: classes that are not wanted of ", query.never_of_rows.size(),
                " rows, of ", rows);
    TORCH_CHECK(query.asked.empty() || std::ssize(query.asked) == rows,
                "[kernels] top: classes that are asked for of ", query.asked.size(), " rows, of ",
                rows);
    for (const int64_t asked : query.asked) asked_places_.push_back(place_of(asked));
    asked_logits_.assign(query.asked.size(), kNoLogit);
  }

  /// logits of all rows for classes [first, first + size); they hold something else afterwards
  void look(float* logits, int64_t row_step, int64_t first, int64_t size) {
    at::parallel_for(0, std::ssize(rows_), 4, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t i = 0; i < size; i += kTopBlock) {
          look_at_block(row, logits + row * row_step + i, first + i, std::min(kTopBlock, size - i));
        }
      }
    });
  }

  TopClasses found() {
    TopClasses all;
    const auto count = static_cast<size_t>(query_.count);
    all.count = query_.count;
    all.classes.assign(rows_.size() * count, -1);
    all.log_probs.assign(rows_.size() * count, kNoLogit);
    for (size_t row = 0; row < rows_.size(); ++row) {
      const double log_sum = rows_[row].log_sum();
      all.log_sums.push_back(log_sum);
      const auto log_prob = [&](float logit) {
        return static_cast<float>(double{logit} - log_sum);
      };
      size_t place = row * count;
      for (const TopEntry& entry : rows_[row].sorted()) {
        all.classes[place] = class_of(entry.place);
        all.log_probs[place++] = log_prob(entry.logit);
      }
      if (!query_.asked.empty()) all.asked_log_probs.push_back(log_prob(asked_logits_[row]));
    }
    return all;
  }

 private:
  int64_t class_of(int64_t place) const {
    return ids_ == nullptr ? place : (*ids_)[static_cast<size_t>(place)];
  }
  /// -1: it is none of them.
  int64_t place_of(int64_t number) const {
    if (ids_ == nullptr || number < 0) return number;
    const auto found = std::ranges::lower_bound(*ids_, number);
    return found == ids_->end() || *found != number ? -1 : found - ids_->begin();
  }

  bool is_wanted(int64_t row, int64_t place) const {
    const int64_t number = class_of(place);
    if (std::ranges::find(query_.never, number) != query_.never.end()) return false;
    if (query_.never_of_rows.empty()) return true;
    const std::vector<int64_t>& own = query_.never_of_rows[static_cast<size_t>(row)];
    return std::ranges::find(own, number) == own.end();
  }

  void look_at_block(int64_t row, float* logits, int64_t first, int64_t size) {
    const auto at = static_cast<size_t>(row);
    if (!asked_places_.empty()) {
      const int64_t asked = asked_places_[at] - first;
      if (asked >= 0 && asked < size) asked_logits_[at] = logits[asked];
    }
    rows_[at].look(logits, first, size, static_cast<size_t>(query_.count),
                   [&](int64_t place) { return is_wanted(row, place); });
    // The loss of a target tells the sum; it may leave other numbers in place of the logits.
    int64_t some = 0;
    while (some < size && logits[some] == kNoLogit) ++some;
    if (some == size) return;  // none is possible
    const double target = logits[some];
    const cpu::LossRow of_one{.classes = size, .target = some, .each = 0, .extra = 0};
    rows_[at].add(cpu::table().loss_row(logits, of_one, /*gradient=*/false).nll + target);
  }

  const TopQuery& query_;
  const std::vector<int64_t>* ids_;
  std::vector<TopRow> rows_;
  std::vector<int64_t> asked_places_;
  std::vector<float> asked_logits_;
};

/// Dense on the CPU, in memory of its own.
at::Tensor host_logits(const at::Tensor& logits) {
  return logits.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
}

}  // namespace

TopClasses linear_top(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double softcap, const TopQuery& query) {
  const at::NoGradGuard no_grad;
  check_rows(x, "linear_top");
  if (!is_fused(x) || !is_fused(weight)) {
    at::Tensor logits = host_logits(softcapped(linear(x, weight, bias).to(at::kFloat), softcap));
    return top_of_logits(logits, query);
  }
  TopSearch search(x.size(0), query, nullptr);
  const int64_t classes = weight.size(0);
  const int64_t block = stood_for(weight) ? kTopCodes : kTopBlock;
  for (int64_t first = 0; first < classes; first += block) {
    const int64_t size = std::min(block, classes - first);
    const at::Tensor shift = bias.defined() ? bias.narrow(0, first, size) : at::Tensor();
    const at::Tensor logits =
        softcapped(linear(x, weight.narrow(0, first, size), shift), softcap).contiguous();
    search.look(logits.data_ptr<float>(), size, first, size);
  }
  return search.found();
}

TopClasses top_of_logits(at::Tensor& logits, const TopQuery& query) {
  check_rows(logits, "top_of_logits");
  TORCH_CHECK(is_fused(logits) && logits.is_contiguous() && logits.size(1) > 0,
              "[kernels] top_of_logits: dense fp32 rows on the CPU, got ", logits.sizes());
  TopSearch search(logits.size(0), query, nullptr);
  search.look(logits.data_ptr<float>(), logits.size(1), 0, logits.size(1));
  return search.found();
}

ClassRows::ClassRows(std::vector<int64_t> ids, const at::Tensor& weight, const at::Tensor& bias)
    : ids_(std::move(ids)) {
  TORCH_CHECK(!ids_.empty() && std::ranges::is_sorted(ids_) && ids_.front() >= 0 &&
                  ids_.back() < weight.size(0),
              "[kernels] ClassRows: ascending classes of ", weight.size(0));
  const at::NoGradGuard no_grad;
  const at::Tensor index = at::tensor(ids_, at::kLong).to(weight.device());
  if (bias.defined()) bias_ = bias.index_select(0, index);
  if (const auto stood = stood_for(weight)) {
    codes_ = std::make_shared<const QuantisedMatrix>(stood->matrix->selected(index + stood->first));
    return;
  }
  weight_ = weight.index_select(0, index);
  if (!is_fused(weight_) || !PackedWeightsScope::is_used()) return;
  packed_ =
      std::make_shared<const gemm::Packed>(gemm::Operand{weight_, true}, ComputeScope::current());
  weight_ = at::Tensor();
}

at::Tensor ClassRows::logits(const at::Tensor& x) const {
  const at::NoGradGuard no_grad;
  if (codes_) return quantised_linear(x, *codes_, bias_);
  if (!packed_) return host_logits(linear(x, weight_, bias_));
  at::Tensor out = at::empty({x.size(0), packed_->columns()}, x.options());
  gemm::multiply({x.contiguous()}, *packed_, bias_, /*add=*/false, out);
  return out;
}

TopClasses linear_top(const at::Tensor& x, const ClassRows& classes, double softcap,
                      const TopQuery& query) {
  const at::NoGradGuard no_grad;
  check_rows(x, "linear_top");
  const at::Tensor logits = softcapped(classes.logits(x), softcap).contiguous();
  TopSearch search(x.size(0), query, &classes.ids());
  search.look(logits.data_ptr<float>(), logits.size(1), 0, logits.size(1));
  return search.found();
}

}  // namespace stretto::kernels
