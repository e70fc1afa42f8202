#include "families/translation/engine/pair_lines.h"

#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/pairs/pair_filter.h"
#include "data/pairs/parallel_input.h"

namespace stretto::tasks {
namespace {

// Input after input, as the corpus reads them.
class TestPairs {
 public:
  explicit TestPairs(const data::DataOptions& options)
      : inputs_(data::inputs_of(options, data::Split::kTest)) {}

  bool next(std::string_view& src, std::string_view& tgt) {
    for (; number_ < inputs_.size(); ++number_) {
      if (reader_ == nullptr) reader_ = std::make_unique<data::PairReader>(inputs_[number_]);
      if (reader_->next(src, tgt)) return true;
      reader_.reset();
    }
    return false;
  }

 private:
  std::vector<data::ParallelInput> inputs_;
  size_t number_ = 0;
  std::unique_ptr<data::PairReader> reader_;
};

}  // namespace

std::string pair_lines(const data::Corpus& corpus, const data::DataOptions& options,
                       const text::TokenizerPair& tokenizers,
                       const std::function<std::string(int64_t sample)>& line_of,
                       const std::string& missing) {
  std::string lines;
  int64_t sample = 0;
  const auto add_next = [&] { lines += line_of(sample++) + "\n"; };
  if (corpus.filters().empty == 0) {
    while (sample < corpus.num_pairs()) add_next();
    return lines;
  }
  TestPairs pairs(options);
  const auto rules = data::rules_for(options, data::Split::kTest);
  std::string_view src, tgt;
  data::EncodedPair encoded;
  data::FilterCounts counts;
  while (pairs.next(src, tgt)) {
    if (!data::encode_pair(rules, tokenizers, src, tgt, {}, encoded, counts)) {
      lines += missing + "\n";
    } else if (sample < corpus.num_pairs()) {
      add_next();
    } else {
      ++sample;
    }
  }
  if (sample != corpus.num_pairs()) {
    throw Error(ExitCode::kBadData, "the text has changed while it was being evaluated",
                "run `stretto eval` again");
  }
  return lines;
}

}  // namespace stretto::tasks
