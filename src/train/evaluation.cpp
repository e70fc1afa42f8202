#include "train/evaluation.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <utility>

#include "distributed/numbers.h"
#include "parallel/parallel_jobs.h"

namespace stretto::train {

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

ScoreTable evaluate(int64_t num_parts, ScoreTable table, const EvaluationSetup& setup,
                    const std::function<void(int64_t part, ScoreTable& table)>& score) {
  const auto& group = setup.group;
  if (setup.threads == BatchThreads::kOne) {
    parallel::ParallelJobs jobs(setup.device);
    jobs.run_share(group, num_parts, [&](int64_t part) { score(part, table); });
  } else {
    const at::NoGradGuard no_grad;
    for (int64_t part = group.rank(); part < num_parts; part += group.size()) {
      group.check_peers();
      score(part, table);
    }
  }
  table.merge(group);
  return table;
}

std::vector<double> evaluate_sums(
    const data::BatchSource& batches, int64_t num_sums, const EvaluationSetup& setup,
    const std::function<std::vector<double>(const data::Batch& batch)>& score) {
  const int64_t count = batches.num_batches();
  const auto table =
      evaluate(count, ScoreTable(count, num_sums), setup, [&](int64_t number, ScoreTable& found) {
        const auto sums = score(batches.load(/*epoch=*/0, number));
        std::ranges::copy(sums, found.row(number).begin());
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
