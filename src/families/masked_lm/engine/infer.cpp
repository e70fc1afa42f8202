#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/text_input.h"
#include "families/masked_lm/engine/commands.h"
#include "families/masked_lm/engine/masked_lm.h"
#include "families/masked_lm/engine/masked_text_view.h"
#include "families/text/engine/batch_tokens.h"
#include "tasks/finite_answers.h"
#include "tasks/side_by_side.h"
#include "text/encoded_text.h"

namespace stretto::tasks {
namespace {

constexpr size_t kFillLines = 256, kFillBytes = size_t{1} << 20;

/// One line on its way through the model.
struct MaskedLine {
  data::InputLine input;
  text::EncodedText text = {};
  std::vector<int64_t> masks = {};  ///< places in `text`
};

/// Fills the masks of lines and prints what it found.
class MaskFiller {
 public:
  MaskFiller(const InferRequest& request, const LoadedTextRun& run)
      : run_directory_(request.run_directory),
        json_(request.json),
        nbest_(request.masked_lm.nbest),
        max_tokens_(batch_tokens(masked_lm_of(request.experiment.options).eval.max_tokens,
                                 run.models.front()->device())),
        passes_(run.models.front()->device()),
        model_(*run.models.front()),
        tokenizer_(*run.tokenizer.tokenizer),
        encoder_(tokenizer_, {.max_tokens = longest_of(request, model_), .pairs = false}) {
    if (tokenizer_.specials().mask >= 0) return;
    throw Error(ExitCode::kUsage, "the tokenizer of the run has no mask token",
                "masks are filled by runs of task.name = \"masked_lm\"");
  }

  void run(data::TextInput& input) {
    std::vector<MaskedLine> lines;
    MaskedLine line;
    size_t bytes = 0;
    while (input.next(line.input)) {
      bytes += line.input.text.size();
      lines.push_back(line);
      if (lines.size() < kFillLines && bytes < kFillBytes && input.ready()) continue;
      flush(lines);
      bytes = 0;
    }
    flush(lines);
  }

 private:
  static int64_t longest_of(const InferRequest& request, const models::TextModel& model) {
    return std::min(masked_lm_of(request.experiment.options).data.max_text_tokens,
                    model.max_length());
  }

  void flush(std::vector<MaskedLine>& lines) {
    for (auto& line : lines) prepare(line);
    std::vector<std::vector<std::vector<Filler>>> found(lines.size());
    const auto batches = cut_into_batches(lines);
    passes_.run(std::ssize(batches),
                [&](int64_t i) { fill(lines, batches[static_cast<size_t>(i)], found); });
    for (size_t i = 0; i < lines.size(); ++i) {
      require_finite(lines[i], found[i]);
      print(lines[i], found[i]);
    }
    lines.clear();
    flush_stdout();
  }

  // NaN sorts before all numbers.
  void require_finite(const MaskedLine& line,
                      const std::vector<std::vector<Filler>>& fillers) const {
    for (const auto& of_mask : fillers) {
      if (of_mask.empty() || std::isfinite(of_mask.front().probability)) continue;
      refuse_not_finite(line.input.place, "a mask of this line", run_directory_);
    }
  }

  void prepare(MaskedLine& line) {
    line.text = {};
    line.masks.clear();
    if (!line.input.problem.empty()) {
      log::warn(line.input.place + ": " + line.input.problem + "; no mask of it is filled");
      return;
    }
    line.text = encoder_.encode(line.input.text);
    for (size_t i = 0; i < line.text.ids.size(); ++i) {
      if (line.text.ids[i] == tokenizer_.specials().mask) {
        line.masks.push_back(static_cast<int64_t>(i));
      }
    }
    if (line.text.num_cut > 0) {
      log::warn(line.input.place + ": " + counted(line.text.num_cut, "token") +
                " cut off (data.max_text_tokens)");
    }
    if (line.masks.empty()) tell_of_no_mask(line);
  }

  /// JSON shows an empty list.
  void tell_of_no_mask(const MaskedLine& line) {
    if (json_ || has_told_of_no_mask_) return;
    has_told_of_no_mask_ = true;
    log::warn(line.input.place + ": there is no mask token, `" +
              tokenizer_.piece(tokenizer_.specials().mask) +
              "`, to fill: its line of the output is empty, as for others without one");
  }

  /// Of the lines that have masks.
  std::vector<data::Batch> cut_into_batches(const std::vector<MaskedLine>& lines) const {
    std::vector<data::Batch> batches;
    for (size_t number = 0; number < lines.size(); ++number) {
      const auto& line = lines[number];
      if (line.masks.empty()) continue;
      const auto rows = static_cast<int64_t>(line.text.ids.size());
      if (batches.empty() || data::tokens(batches.back()).num_rows() + rows > max_tokens_) {
        batches.push_back(data::masked_batch());
      }
      data::Batch& batch = batches.back();
      batch.sample_ids.push_back(static_cast<int64_t>(number));
      append_text(line.text, batch);
      batch.column<int64_t>(data::kMaskedRows).append(line.masks);
    }
    return batches;
  }

  /// Writes what fills the masks of the batch to their lines in `found`.
  void fill(const std::vector<MaskedLine>& lines, const data::Batch& batch,
            std::vector<std::vector<std::vector<Filler>>>& found) const {
    auto fillers = fillers_of(model_, batch, nbest_);
    auto next = fillers.begin();
    for (const int64_t line : batch.sample_ids) {
      const auto count = lines[static_cast<size_t>(line)].masks.size();
      found[static_cast<size_t>(line)].assign(next, next + static_cast<std::ptrdiff_t>(count));
      next += static_cast<std::ptrdiff_t>(count);
    }
  }

  void print(const MaskedLine& line, const std::vector<std::vector<Filler>>& fillers) const {
    if (json_) {
      print_json(line, fillers);
      return;
    }
    std::vector<std::string> masks;
    for (const auto& of_mask : fillers) {
      std::vector<std::string> words;
      for (const Filler& filler : of_mask) {
        words.push_back(token_text(tokenizer_, filler.id) + " " + fixed(filler.probability, 4));
      }
      masks.push_back(join(words, ", "));
    }
    std::cout << shown_on_stdout(join(masks, "\t")) << "\n";
  }

  void print_json(const MaskedLine& line, const std::vector<std::vector<Filler>>& fillers) const {
    nlohmann::ordered_json json{{"text", line.input.text}};
    if (!line.input.problem.empty()) json["problem"] = line.input.problem;
    if (line.text.num_cut > 0) json["cut_tokens"] = line.text.num_cut;
    json["masks"] = nlohmann::ordered_json::array();
    auto filled = line.text.ids;
    for (size_t i = 0; i < fillers.size(); ++i) {
      auto list = nlohmann::ordered_json::array();
      for (const Filler& filler : fillers[i]) {
        list.push_back(
            {{"token", token_text(tokenizer_, filler.id)}, {"probability", filler.probability}});
      }
      json["masks"].push_back({{"fillers", std::move(list)}});
      filled[static_cast<size_t>(line.masks[i])] = fillers[i].front().id;
    }
    if (line.input.problem.empty()) {
      json["filled"] = fillers.empty() ? line.input.text : tokenizer_.decode(filled);
    }
    std::cout << shown_on_stdout(
                     json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
              << "\n";
  }

  const std::string run_directory_;
  const bool json_;
  const int64_t nbest_, max_tokens_;
  SideBySide passes_;
  models::TextModel& model_;
  const text::Tokenizer& tokenizer_;
  text::TextEncoder encoder_;
  bool has_told_of_no_mask_ = false;
};

}  // namespace

int fill_masks(const InferRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  data::TextInput input(request.files);  // a missing file is told before models load
  const auto run =
      load_masked_lm(request.experiment.options, folder, request.checkpoints, context.device);
  MaskFiller(request, run).run(input);
  return 0;
}

}  // namespace stretto::tasks
