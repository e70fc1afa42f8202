#include "tasks/translation/pair_lines.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "data/pairs/pair_filter.h"

namespace stretto::tasks {
namespace {

// Pairs of files first, then TSV files, as in the corpus.
class TestPairs {
 public:
  explicit TestPairs(const data::DataOptions& options)
      : src_(data::open_lines(options.test_src)),
        tgt_(data::open_lines(options.test_tgt)),
        src_column_(data::open_tsv_column(options.test_tsv, options.src_column)),
        tgt_column_(data::open_tsv_column(options.test_tsv, options.tgt_column)) {}

  bool next(std::string& src, std::string& tgt) {
    return (src_->next(src) && tgt_->next(tgt)) ||
           (src_column_->next(src) && tgt_column_->next(tgt));
  }

 private:
  std::unique_ptr<text::LineSource> src_, tgt_, src_column_, tgt_column_;
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
  std::string src, tgt;
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
