#include "data/pairs/corpus_check.h"

#include "base/text.h"
#include "data/pairs/corpus_build.h"
#include "data/pairs/pair_faults.h"
#include "data/pairs/pair_filter.h"
#include "data/pairs/parallel_input.h"

namespace stretto::data {
namespace {

constexpr size_t kBytesBetweenLooks = size_t{256} << 10;
// To tokenise takes a hundred times as long as to read.
constexpr size_t kBytesOfTokensBetweenLooks = size_t{8} << 10;
constexpr size_t kLooksPerBadPairs = 100;  // lines that are left out may be long

std::string unread_from(const std::vector<ParallelInput>& inputs, size_t input, int64_t line) {
  std::string text = inputs[input].src + " from line " + with_thousands(line) + " on";
  const size_t more = inputs.size() - input - 1;
  if (more > 0)
    text += " and " + std::to_string(more) + (more == 1 ? " input more" : " inputs more");
  return text;
}

/// Reads pair after pair of all inputs until `visit` says that it has seen enough. A PairFault that
/// it throws is one of its pair.
class Walk {
 public:
  /// @param every  bytes between two looks at the time
  Walk(const DataOptions& options, const std::vector<ParallelInput>& inputs, size_t every,
       const StillTime& still_time)
      : inputs_(inputs),
        every_(every),
        still_time_(still_time),
        faults_(bad_sample_rule(options)) {}

  /// @param visit  bool(src, tgt, place); false = enough
  template <class Visit>
  ReadExtent run(const Visit& visit) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      try {
        const bool more = read(i, visit);
        faults_.end_input();
        if (!more) break;
      } catch (const Error&) {
        faults_.end_input();  // a bad pair before this place comes first
        throw;
      }
    }
    return look_;
  }

  const LeftOut& left_out() const { return faults_.left_out(); }

 private:
  /// @return whether there is more to see behind this input
  template <class Visit>
  bool read(size_t number, const Visit& visit) {
    PairReader reader(inputs_[number], still_time_);
    PairPlace place{.src_name = inputs_[number].src,
                    .tgt_name = inputs_[number].tgt,
                    .line = 1,
                    .input = static_cast<int64_t>(number),
                    .src2_name = inputs_[number].src2};
    std::string_view src, tgt;
    for (;; ++place.line) {
      if (bytes_ >= every_) {
        bytes_ = 0;
        if (!still_time_()) {
          look_.unread = unread_from(inputs_, number, place.line);
          return false;
        }
      }
      try {
        if (!reader.next(src, tgt)) return true;
        bytes_ += src.size() + tgt.size() + 2;
        if (!visit(src, tgt, place)) return false;
        ++look_.pairs;
      } catch (const PairFault& fault) {
        bytes_ += every_ / kLooksPerBadPairs;
        faults_.add(fault);
      }
    }
  }

  const std::vector<ParallelInput>& inputs_;
  size_t every_, bytes_ = every_;
  const StillTime& still_time_;
  PairFaults faults_;
  ReadExtent look_;
};

}  // namespace

ReadExtent check_lines(const DataOptions& options, Split split, const StillTime& still_time) {
  const auto inputs = inputs_of(options, split);
  for (const ParallelInput& input : inputs) PairReader{input};
  const PairRules rules = rules_for(options, split);
  return Walk(options, inputs, kBytesBetweenLooks, still_time)
      .run([&](std::string_view src, std::string_view tgt, const auto& place) {
        require_utf8(rules, src, tgt, place);
        return true;
      });
}

ReadExtent check_filters(const DataOptions& options, Split split,
                         const text::TokenizerPair& tokenizers, const StillTime& still_time) {
  CorpusPlan plan{.inputs = inputs_of(options, split), .rules = rules_for(options, split)};
  const bool all =
      plan.rules.too_long == TooLong::kError || plan.rules.invalid_utf8 == InvalidUtf8::kError;
  EncodedPair pair;
  FilterCounts counts;
  Walk walk(options, plan.inputs, kBytesOfTokensBetweenLooks, still_time);
  const auto look = walk.run([&](std::string_view src, std::string_view tgt, const auto& place) {
    const bool kept = encode_pair(plan.rules, tokenizers, src, tgt, place, pair, counts);
    return all || !kept;
  });
  counts.left_out = walk.left_out();
  if (counts.kept == 0 && look.unread.empty()) throw_empty_corpus(plan, counts);
  return look;
}

TextExtent count_pieces(const DataOptions& options, Split split,
                        const text::TokenizerPair& tokenizers, const StillTime& still_time) {
  const auto inputs = inputs_of(options, split);
  const PairRules rules = rules_for(options, split);
  TextExtent found;
  EncodedPair pair;
  FilterCounts filters;
  found.look = Walk(options, inputs, kBytesOfTokensBetweenLooks, still_time)
                   .run([&](std::string_view src, std::string_view tgt, const auto& place) {
                     if (encode_pair(rules, tokenizers, src, tgt, place, pair, filters)) {
                       count_pair(tokenizers, pair, found.src, found.tgt);
                     }
                     return true;
                   });
  return found;
}

}  // namespace stretto::data
