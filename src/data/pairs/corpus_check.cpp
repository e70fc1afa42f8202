#include "data/pairs/corpus_check.h"

#include "base/text.h"
#include "data/pairs/corpus_build.h"
#include "data/pairs/pair_filter.h"
#include "data/pairs/parallel_input.h"

namespace stretto::data {
namespace {

constexpr size_t kBytesBetweenLooks = size_t{256} << 10;
// To tokenise takes a hundred times as long as to read.
constexpr size_t kBytesOfTokensBetweenLooks = size_t{8} << 10;

std::string unread_from(const std::vector<ParallelInput>& inputs, size_t input, int64_t line) {
  std::string text = inputs[input].src + " from line " + with_thousands(line) + " on";
  const size_t more = inputs.size() - input - 1;
  if (more > 0)
    text += " and " + std::to_string(more) + (more == 1 ? " input more" : " inputs more");
  return text;
}

/// Reads pair after pair of all inputs until `visit` says that it has seen enough.
/// @param every  bytes between two looks at the time
/// @param visit  bool(src, tgt, place); false = enough
template <class Visit>
CorpusLook walk(const std::vector<ParallelInput>& inputs, size_t every, const StillTime& still_time,
                const Visit& visit) {
  CorpusLook look;
  size_t bytes = every;
  for (size_t i = 0; i < inputs.size(); ++i) {
    PairReader reader(inputs[i], still_time);
    PairPlace place{.src_name = inputs[i].src,
                    .tgt_name = inputs[i].tgt,
                    .line = 1,
                    .input = static_cast<int64_t>(i),
                    .src2_name = inputs[i].src2};
    std::string_view src, tgt;
    for (;; ++place.line, ++look.pairs) {
      if (bytes >= every) {
        bytes = 0;
        if (!still_time()) {
          look.unread = unread_from(inputs, i, place.line);
          return look;
        }
      }
      if (!reader.next(src, tgt)) break;
      bytes += src.size() + tgt.size() + 2;
      if (!visit(src, tgt, place)) return look;
    }
  }
  return look;
}

}  // namespace

CorpusLook check_lines(const DataOptions& options, Split split, const StillTime& still_time) {
  const auto inputs = inputs_of(options, split);
  for (const ParallelInput& input : inputs) PairReader{input};
  const PairRules rules = rules_for(options, split);
  return walk(inputs, kBytesBetweenLooks, still_time,
              [&](std::string_view src, std::string_view tgt, const auto& place) {
                require_utf8(rules, src, tgt, place);
                return true;
              });
}

CorpusLook check_filters(const DataOptions& options, Split split,
                         const text::TokenizerPair& tokenizers, const StillTime& still_time) {
  CorpusPlan plan{.inputs = inputs_of(options, split), .rules = rules_for(options, split)};
  const bool all =
      plan.rules.too_long == TooLong::kError || plan.rules.invalid_utf8 == InvalidUtf8::kError;
  EncodedPair pair;
  FilterCounts counts;
  const auto look = walk(plan.inputs, kBytesOfTokensBetweenLooks, still_time,
                         [&](std::string_view src, std::string_view tgt, const auto& place) {
                           const bool kept =
                               encode_pair(plan.rules, tokenizers, src, tgt, place, pair, counts);
                           return all || !kept;
                         });
  if (counts.kept == 0 && look.unread.empty()) throw_empty_corpus(plan, counts);
  return look;
}

TextLook count_pieces(const DataOptions& options, Split split,
                      const text::TokenizerPair& tokenizers, const StillTime& still_time) {
  const auto inputs = inputs_of(options, split);
  const PairRules rules = rules_for(options, split);
  TextLook found;
  EncodedPair pair;
  FilterCounts filters;
  found.look = walk(inputs, kBytesOfTokensBetweenLooks, still_time,
                    [&](std::string_view src, std::string_view tgt, const auto& place) {
                      if (encode_pair(rules, tokenizers, src, tgt, place, pair, filters)) {
                        count_pair(tokenizers, pair, found.src, found.tgt);
                      }
                      return true;
                    });
  return found;
}

}  // namespace stretto::data
