#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <unordered_map>

#include "base/error.h"
#include "base/random.h"
#include "base/system_info.h"
#include "base/text.h"
#include "text/leading_specials.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

// The unigram trainer sums floats per thread, so the number of threads is part of its result.
constexpr int64_t kUnigramThreads = 8;

/// Hands the library our lines without a copy of all of them.
class LineIterator final : public sentencepiece::SentenceIterator {
 public:
  explicit LineIterator(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return next_ >= lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t next_ = 0;
};

/// The number that follows `marker` in a message, or -1.
int64_t number_after(const std::string& message, const std::string& marker) {
  const size_t at = message.find(marker);
  if (at == std::string::npos) return -1;
  int64_t number = -1;
  for (size_t i = at + marker.size(); i < message.size() && std::isdigit(message[i]) != 0; ++i) {
    number = (number < 0 ? 0 : number * 10) + (message[i] - '0');
  }
  return number;
}

[[noreturn]] void explain(const std::string& message, const SentencePieceTraining& options) {
  const std::string size = std::to_string(options.vocab_size);
  const int64_t largest = number_after(message, "value <= ");
  if (largest > 0) {
    throw Error(
        ExitCode::kUsage,
        "tokenizer.vocab_size: the training text is too small for " + size +
            " pieces; the largest possible size is " + std::to_string(largest),
        "set tokenizer.vocab_size=" + std::to_string(largest) + " or less, or train on more text");
  }
  const int64_t smallest = number_after(message, "required_chars. " + size + " vs ");
  if (smallest > 0) {
    throw Error(ExitCode::kUsage,
                "tokenizer.vocab_size: " + size + " pieces cannot hold the " +
                    std::to_string(smallest) + " characters and specials of the training text",
                "set tokenizer.vocab_size=" + std::to_string(smallest) +
                    " or more, or lower tokenizer.character_coverage");
  }
  throw Error(ExitCode::kBadData,
              "SentencePiece cannot train on this text: " + printable(message, 300),
              "look at the training text that [data] names, or load a model with tokenizer.model");
}

// More threads have next to nothing to do.
constexpr int64_t kMostThreads = 16;

int64_t threads_of(const SentencePieceTraining& options) {
  if (options.algorithm == "unigram") return kUnigramThreads;
  if (options.num_threads > 0) return options.num_threads;
  return std::min<int64_t>(usable_cores(), kMostThreads);
}

}  // namespace

void sample_lines(LineSource& source, uint64_t number, const TrainingSample& sample,
                  std::vector<std::string>& lines) {
  RandomStream random(mix64(sample.seed, number));
  const auto limit = static_cast<uint64_t>(sample.max_lines);
  const size_t first = lines.size();
  uint64_t seen = 0;
  std::string line;
  while (source.next(line)) {
    if (trim(line).empty() || !is_valid_utf8(line)) continue;
    ++seen;
    if (seen <= limit) {
      lines.push_back(line);
    } else if (const uint64_t slot = random.below(seen); slot < limit) {
      lines[first + slot] = line;
    }
  }
}

std::string train_sentencepiece(const std::vector<std::string>& lines,
                                const SentencePieceTraining& options) {
  if (lines.empty()) {
    throw Error(ExitCode::kBadData, "there is no text to train a SentencePiece model on",
                "look at the training text that [data] names: it holds no usable line");
  }
  const std::unordered_map<std::string, std::string> arguments{
      {"model_type", options.algorithm},
      {"vocab_size", std::to_string(options.vocab_size)},
      {"character_coverage", shortest(options.character_coverage)},
      {"pad_id", std::to_string(kLeadingSpecials.pad)},
      {"unk_id", std::to_string(kLeadingSpecials.unk)},
      {"bos_id", std::to_string(kLeadingSpecials.bos)},
      {"eos_id", std::to_string(kLeadingSpecials.eos)},
      {"num_threads", std::to_string(threads_of(options))},
      {"minloglevel", "2"},
  };
  std::string model;
  LineIterator iterator(lines);
  std::string failure;
  try {
    const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &model);
    if (status.ok()) return model;
    failure = status.message();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    failure = thrown.what();
  }
  explain(failure, options);
}

}  // namespace stretto::text
