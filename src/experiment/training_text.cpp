#include "experiment/training_text.h"

#include <memory>
#include <string>

#include "data/pairs/corpus.h"
#include "data/pairs/parallel_input.h"

namespace stretto::experiment {
namespace {

// Lines of one side of the training text, pairs of files first, then TSV columns. Of two sources
// the second ones follow: one tokenizer reads both.
class TrainingLines : public text::LineSource {
 public:
  TrainingLines(const data::DataOptions& options, bool source)
      : source_(source),
        files_(data::open_lines(source ? options.train_src : options.train_tgt)),
        columns_(data::open_tsv_column(options.train_tsv,
                                       source ? options.src_column : options.tgt_column)) {
    if (!source) return;
    second_files_ = data::on_second_source([&] { return data::open_lines(options.train_src2); });
    if (options.src2_column == 0) return;
    second_columns_ = data::open_tsv_column(options.train_tsv, options.src2_column);
  }

  bool next(std::string& line) override {
    const bool more =
        source_ ? files_->next(line) : data::on_target_side([&] { return files_->next(line); });
    return more || columns_->next(line) || next_second(line);
  }

 private:
  bool next_second(std::string& line) {
    if (second_files_ == nullptr) return false;
    return data::on_second_source([&] { return second_files_->next(line); }) ||
           (second_columns_ != nullptr && second_columns_->next(line));
  }

  bool source_;
  std::unique_ptr<text::LineSource> files_, columns_, second_files_, second_columns_;
};

}  // namespace

text::TokenizerPair make_experiment_tokenizers(const Experiment& experiment) {
  TrainingLines src(experiment.data, true), tgt(experiment.data, false);
  return text::make_tokenizers(experiment.tokenizer, static_cast<uint64_t>(experiment.run.seed),
                               &src, &tgt);
}

}  // namespace stretto::experiment
