#include "experiment/training_text.h"

#include <memory>
#include <string>

#include "data/pairs/corpus.h"
#include "data/pairs/parallel_input.h"

namespace stretto::experiment {
namespace {

// Lines of one side of the training text, pairs of files first, then TSV columns.
class TrainingLines : public text::LineSource {
 public:
  TrainingLines(const data::DataOptions& options, bool source)
      : source_(source),
        files_(data::open_lines(source ? options.train_src : options.train_tgt)),
        columns_(data::open_tsv_column(options.train_tsv,
                                       source ? options.src_column : options.tgt_column)) {}

  bool next(std::string& line) override {
    const bool more =
        source_ ? files_->next(line) : data::on_target_side([&] { return files_->next(line); });
    return more || columns_->next(line);
  }

 private:
  bool source_;
  std::unique_ptr<text::LineSource> files_, columns_;
};

}  // namespace

text::TokenizerPair make_experiment_tokenizers(const Experiment& experiment) {
  TrainingLines src(experiment.data, true), tgt(experiment.data, false);
  return text::make_tokenizers(experiment.tokenizer, static_cast<uint64_t>(experiment.run.seed),
                               &src, &tgt);
}

}  // namespace stretto::experiment
