#include "train/evaluation.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <utility>

#include "data/prefetcher.h"
#include "distributed/numbers.h"
#include "parallel/parallel_jobs.h"

namespace stretto::train {
namespace {

// Each thread loads and prepares the parts that it computes.
void compute_on_threads(const EvaluationParts& parts, ScoreTable& table,
                        const EvaluationSetup& setup, const ScorePart& score) {
  const Preparation preparation{setup.prepare, setup.device};
  parallel::ParallelJobs jobs(setup.device);
  jobs.run_share(setup.group, parts.count, [&](int64_t part) {
    std::vector<Prepared> batches;
    for (auto& batch : parts.load(part)) batches.push_back(preparation.now(std::move(batch)));
    score(part, batches, table);
  });
}

// One part after the other; those behind it are loaded and prepared meanwhile.
void compute_in_order(const EvaluationParts& parts, ScoreTable& table, const EvaluationSetup& setup,
                      const ScorePart& score) {
  const Preparation preparation{setup.prepare, setup.device};
  const int64_t rank = setup.group.rank(), size = setup.group.size();
  const int64_t own = rank < parts.count ? (parts.count - rank + size - 1) / size : 0;
  const auto make_ready = [&](int64_t number) {
    std::vector<Prepared> batches;
    for (auto& batch : parts.load(rank + number * size)) {
      batches.push_back(preparation.ahead(std::move(batch)));
    }
    return batches;
  };
  data::Prefetcher<std::vector<Prepared>> prefetcher(setup.loading, make_ready, own);
  const auto compute = [&](int64_t part) {
    auto batches = prefetcher.next();
    for (Prepared& batch : batches) batch.send(setup.device);
    score(part, batches, table);
  };
  if (setup.threads == BatchThreads::kOne) {
    parallel::ParallelJobs jobs(setup.device);  // one after the other, for what they keep
    jobs.run_share(setup.group, parts.count, compute);
    return;
  }
  const at::NoGradGuard no_grad;
  for (int64_t part = rank; part < parts.count; part += size) {
    setup.group.check_peers();
    compute(part);
  }
}

}  // namespace

void ScoreTable::fill(std::span<const int64_t> rows, int64_t column, const at::Tensor& values) {
  const at::Tensor found = values.to(at::kCPU, at::kDouble).contiguous();
  const int64_t width = found.dim() == 2 ? found.size(1) : 1;
  const double* from = found.const_data_ptr<double>();
  for (const int64_t number : rows) {
    std::copy_n(from, width, row(number).begin() + column);
    from += width;
  }
}

void ScoreTable::merge(const distributed::ProcessGroup& group) {
  distributed::sum_numbers(group, numbers_);  // of zeros and one number: exact
}

double ScoreTable::sum(int64_t column) const {
  double sum = 0;
  for (size_t i = static_cast<size_t>(column); i < numbers_.size(); i += num_columns_)
    sum += numbers_[i];
  return sum;
}

EvaluationParts parts_of(const data::BatchSource& batches) {
  return {.count = batches.num_batches(), .load = [&batches](int64_t number) {
            return std::vector<data::Batch>{batches.load(/*epoch=*/0, number)};
          }};
}

ScoreTable evaluate(const EvaluationParts& parts, ScoreTable table, const EvaluationSetup& setup,
                    const ScorePart& score) {
  const bool by_threads = setup.threads == BatchThreads::kOne && setup.device.is_cpu();
  if (by_threads) {
    compute_on_threads(parts, table, setup, score);
  } else {
    compute_in_order(parts, table, setup, score);
  }
  table.merge(setup.group);
  return table;
}

std::vector<double> evaluate_sums(
    const data::BatchSource& batches, int64_t num_sums, const EvaluationSetup& setup,
    const std::function<std::vector<double>(const Prepared& batch)>& score) {
  const EvaluationParts parts = parts_of(batches);
  const auto table =
      evaluate(parts, ScoreTable(parts.count, num_sums), setup,
               [&](int64_t number, std::span<const Prepared> batch, ScoreTable& found) {
                 std::ranges::copy(score(batch.front()), found.row(number).begin());
               });
  std::vector<double> sums;
  for (int64_t i = 0; i < num_sums; ++i) sums.push_back(table.sum(i));
  return sums;
}

void AnswerBytes::add(size_t sample, std::span<const std::byte> answer) {
  const std::array<uint64_t, 2> head{sample, answer.size()};
  bytes_.append(reinterpret_cast<const char*>(head.data()), sizeof(head));
  bytes_.append(reinterpret_cast<const char*>(answer.data()), answer.size());
}

void AnswerBytes::exchange(
    const distributed::ProcessGroup& group,
    const std::function<void(size_t sample, std::string_view answer)>& take) const {
  for (const std::string& theirs : group.all_gather_bytes(bytes_)) {
    for (std::string_view left = theirs; !left.empty();) {
      std::array<uint64_t, 2> head{};
      std::memcpy(head.data(), left.data(), sizeof(head));
      left.remove_prefix(sizeof(head));
      take(head[0], left.substr(0, head[1]));
      left.remove_prefix(head[1]);
    }
  }
}

}  // namespace stretto::train
