#include "families/translation/training_text.h"

#include <memory>
#include <string>
#include <vector>

#include "data/pairs/parallel_input.h"
#include "data/pairs/tsv_lines.h"
#include "data/text_lines.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

// Lines of one side of the training text, pairs of files first, then TSV columns; several heads
// follow each other. The second sources of pairs with two come last: one tokenizer reads both.
class TrainingLines : public text::LineSource {
 public:
  TrainingLines(const Experiment& experiment, bool source)
      : source_(source), heads_(heads_of(experiment)) {
    for (const Head& head : heads_) add(head.data);
  }

  bool next(std::string& line) override {
    for (; at_ < parts_.size(); ++at_) {
      const Part& part = parts_[at_];
      if (next_of(*part.files, line) || part.columns->next(line)) return true;
      if (part.second_files == nullptr) continue;
      if (data::on_second_source([&] { return part.second_files->next(line); })) return true;
      if (part.second_columns != nullptr && part.second_columns->next(line)) return true;
    }
    return false;
  }

 private:
  struct Part {
    std::unique_ptr<text::LineSource> files, columns, second_files = nullptr,
                                                      second_columns = nullptr;
  };

  void add(const data::DataOptions& options) {
    const auto bad_samples = data::bad_sample_rule(options);
    Part part{
        data::open_lines(source_ ? options.train_src : options.train_tgt, bad_samples),
        data::open_tsv_column(options.train_tsv, source_ ? options.src_column : options.tgt_column,
                              data::separator_of(options), bad_samples)};
    if (source_) {
      part.second_files =
          data::on_second_source([&] { return data::open_lines(options.train_src2, bad_samples); });
      if (options.src2_column != 0) {
        part.second_columns = data::open_tsv_column(options.train_tsv, options.src2_column,
                                                    data::separator_of(options), bad_samples);
      }
    }
    parts_.push_back(std::move(part));
  }

  bool next_of(text::LineSource& files, std::string& line) const {
    return source_ ? files.next(line) : data::on_target_side([&] { return files.next(line); });
  }

  bool source_;
  std::vector<Head> heads_;  // whose lists the sources may refer to
  std::vector<Part> parts_;
  size_t at_ = 0;
};

}  // namespace

text::TokenizerPair make_experiment_tokenizers(const Experiment& experiment) {
  TrainingLines src(experiment, true), tgt(experiment, false);
  return text::make_tokenizers(translation_of(experiment).tokenizer,
                               static_cast<uint64_t>(experiment.run.seed), &src, &tgt);
}

}  // namespace stretto::experiment
