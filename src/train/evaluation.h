#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/batch_source.h"
#include "data/loading.h"
#include "distributed/process_group.h"
#include "train/prepared.h"

/// The evaluation of a set of samples by several processes, for validation and for `eval`.
///
/// Letters: B samples of a batch, W numbers of a sample.
namespace stretto::train {

/// What an evaluation found: a row of numbers for each sample of a set, or for each of its batches.
///
/// One process fills each row. Merging therefore rounds nothing, and a sum in the order of rows has
/// the same bits for any number of processes and threads.
class ScoreTable {
 public:
  /// All numbers are 0 at first.
  ScoreTable(int64_t num_rows, int64_t num_columns)
      : num_columns_(static_cast<size_t>(num_columns)),
        numbers_(static_cast<size_t>(num_rows) * num_columns_) {}

  std::span<double> row(int64_t number) {
    return {numbers_.data() + static_cast<size_t>(number) * num_columns_, num_columns_};
  }
  std::span<const double> row(int64_t number) const {
    return {numbers_.data() + static_cast<size_t>(number) * num_columns_, num_columns_};
  }
  /// Writes values [B] or [B, W], of any type on any device, into these rows from `column` on.
  /// @param rows  [B], such as data::Batch::sample_ids
  void fill(std::span<const int64_t> rows, int64_t column, const at::Tensor& values);

  /// Every process gets the rows of all processes. Collective.
  void merge(const distributed::ProcessGroup& group);
  /// The sum of a column, added in the order of rows.
  double sum(int64_t column) const;

 private:
  size_t num_columns_;
  std::vector<double> numbers_;  ///< [rows, columns]
};

/// How the threads of a CPU compute the batches of a set.
enum class BatchThreads : uint8_t {
  kOne,  ///< each thread computes whole batches, with weights laid out once
         ///< (parallel/parallel_jobs.h)
  kAll,  ///< all threads compute one batch after the other, by the products of training
};

/// The device and the processes that evaluate a set, and how its batches are made ready for them.
struct EvaluationSetup {
  at::Device device = at::kCPU;
  distributed::ProcessGroup group = {};
  BatchThreads threads = BatchThreads::kOne;
  /// Where one batch is computed after the other, batches are loaded and prepared ahead, as those
  /// of training. Where threads compute whole batches, each loads and prepares its own: none waits.
  data::Loading loading = {};
  Prepare prepare = {};
};

/// A set in numbered parts of one or more batches.
struct EvaluationParts {
  int64_t count = 0;
  /// Loads the batches of a part; called by several threads at once.
  std::function<std::vector<data::Batch>(int64_t part)> load;
};
/// Each batch is a part. The source must outlive the parts.
EvaluationParts parts_of(const data::BatchSource& batches);

/// Computes a part, whose batches are prepared and on the device, and fills its rows in the table.
/// Called without gradients, and by several threads at once.
using ScorePart =
    std::function<void(int64_t part, std::span<const Prepared> batches, ScoreTable& table)>;

/// Evaluates a set: each process computes every size-th part. Collective.
///
/// @param table  of zeroes
/// @return the table with all rows, on every process
/// Throws what loading, preparing or `score` throws first, and Error(kPeerLost) when a process is
/// lost.
ScoreTable evaluate(const EvaluationParts& parts, ScoreTable table, const EvaluationSetup& setup,
                    const ScorePart& score);

/// Sums over the batches of a set, such as the loss and the tokens that it is divided by, added in
/// the order of batches. Collective.
///
/// @param score  computes the `num_sums` sums of a batch, as evaluate() calls it
std::vector<double> evaluate_sums(
    const data::BatchSource& batches, int64_t num_sums, const EvaluationSetup& setup,
    const std::function<std::vector<double>(const Prepared& batch)>& score);

/// The answers of one process as bytes, each with the number of its sample.
class AnswerBytes {
 public:
  void add(size_t sample, std::span<const std::byte> answer);
  /// Calls `take` with each answer of each process, in order of rank. Collective.
  void exchange(const distributed::ProcessGroup& group,
                const std::function<void(size_t sample, std::string_view answer)>& take) const;

 private:
  std::string bytes_;
};

/// Merges answers to samples: texts, or ids. A process has an answer to each sample that it
/// computed, and none (empty) to the others; afterwards every process has all answers. Collective.
template <class Answer>
void merge_answers(const distributed::ProcessGroup& group, std::vector<Answer>& answers) {
  if (group.size() == 1) return;
  AnswerBytes mine;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].empty()) mine.add(i, std::as_bytes(std::span(answers[i])));
  }
  mine.exchange(group, [&](size_t sample, std::string_view bytes) {
    answers.at(sample).resize(bytes.size() / sizeof(answers[sample][0]));
    std::memcpy(answers[sample].data(), bytes.data(), bytes.size());
  });
}

}  // namespace stretto::train
