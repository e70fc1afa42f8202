#include "data/labelled/labelled_scan.h"

#include <unordered_map>

#include "base/error.h"

namespace stretto::data {
namespace {

class LabelledScan {
 public:
  LabelledScan(const LabelledInput& input, const ReadBudget& budget, LabelledFacts& facts,
               const LabelledSink& sink)
      : input_(input),
        budget_(budget),
        facts_(facts),
        sink_(sink),
        bad_(input.columns.bad_samples) {}

  void run() {
    for (size_t file = 0; file < input_.paths.size(); ++file) {
      LabelledReader reader(input_.paths[file], input_.columns, &bad_);
      if (auto header = reader.header_as_row())
        facts_.headers.push_back({file, std::move(*header)});
      for (LabelledRow row; reader.next(row);) {
        take(file, reader, row);
        if (is_left()) continue;
        bad_.end_file();
        facts_.unread = reader.name() + " behind line " + std::to_string(row.line);
        return;
      }
      facts_.skipped += reader.num_skipped();
    }
    facts_.left_out = bad_.left_out();
  }

 private:
  bool is_left() {
    if (++num_read_ >= budget_.rows) return false;
    return budget_.end == std::chrono::steady_clock::time_point::max() ||
           std::chrono::steady_clock::now() < budget_.end;
  }

  void take(size_t file, const LabelledReader& reader, const LabelledRow& row) {
    if (input_.labels != nullptr) {
      try {
        for (const auto& label : row.labels) input_.labels->number_of(label, reader.place(row));
      } catch (const Error& error) {
        ++facts_.other_labels;
        return bad_.add(SampleError::of(error, reader.name()));
      }
    }
    numbers_.clear();
    for (const auto& label : row.labels) numbers_.push_back(number_of(label));
    ++facts_.rows;
    if (sink_ && !bad_.is_stopping()) sink_(file, row, numbers_);
  }

  uint32_t number_of(const std::string& label) {
    const auto [found, is_new] =
        known_.try_emplace(label, static_cast<uint32_t>(facts_.labels.size()));
    if (is_new) facts_.labels.push_back(label);
    return found->second;
  }

  const LabelledInput& input_;
  const ReadBudget& budget_;
  LabelledFacts& facts_;
  const LabelledSink& sink_;
  BadSamples bad_;
  std::unordered_map<std::string, uint32_t> known_;
  std::vector<uint32_t> numbers_;
  int64_t num_read_ = 0;
};

}  // namespace

void scan_labelled(const LabelledInput& input, const ReadBudget& budget, LabelledFacts& facts,
                   const LabelledSink& sink) {
  LabelledScan(input, budget, facts, sink).run();
}

std::string place_of(const LabelledInput& input, const HeaderRow& header) {
  return input.paths.at(header.file) + ":" + std::to_string(header.row.line);
}

}  // namespace stretto::data
