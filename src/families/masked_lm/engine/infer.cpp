#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "families/masked_lm/engine/commands.h"
#include "families/masked_lm/engine/masked_lm.h"
#include "families/masked_lm/engine/masked_text_view.h"
#include "families/masked_lm/requests.h"
#include "families/text/engine/batch_tokens.h"
#include "tasks/line_work.h"
#include "text/encoded_text.h"

namespace stretto::tasks {
namespace {

struct MaskedLine : WorkLine {
  text::EncodedText text = {};
  std::vector<int64_t> masks = {};  ///< places in `text`
  std::vector<MaskFillers> found = {};
};

/// Fills the masks of lines and prints what it found.
class MaskFiller : public LineFamily<MaskedLine> {
 public:
  MaskFiller(const InferRequest& request, const LoadedTextRun& run)
      : json_(request.json),
        nbest_(request.own.as<MaskedLmInferArguments>().nbest),
        model_(*run.models.front()),
        tokenizer_(*run.tokenizer.tokenizer),
        encoder_(tokenizer_, {.max_tokens = longest_of(request, model_), .pairs = false}) {
    if (tokenizer_.specials().mask >= 0) return;
    throw Error(ExitCode::kUsage, "the tokenizer of the run has no mask token",
                "masks are filled by runs of task.name = \"masked_lm\"");
  }

  void prepare(MaskedLine& line) const override {
    line.text = encoder_.encode(line.input.text);
    line.num_tokens = std::ssize(line.text.ids) + line.text.num_cut;
    line.cut_tokens = line.text.num_cut;
    for (size_t i = 0; i < line.text.ids.size(); ++i) {
      if (line.text.ids[i] == tokenizer_.specials().mask) {
        line.masks.push_back(static_cast<int64_t>(i));
      }
    }
    if (line.cut_tokens > 0) {
      line.note = counted(line.cut_tokens, "token") + " cut off (data.max_text_tokens)";
    }
  }

  /// Tells once of lines without a mask. JSON shows an empty list.
  void arrange(std::span<MaskedLine> window) override {
    const auto line = std::ranges::find_if(window, [](const MaskedLine& one) {
      return one.input.problem.empty() && one.masks.empty();
    });
    if (json_ || has_told_of_no_mask_ || line == window.end()) return;
    has_told_of_no_mask_ = true;
    log::warn(line->input.place + ": there is no mask token, `" +
              tokenizer_.piece(tokenizer_.specials().mask) +
              "`, to fill: its line of the output is empty, as for others without one");
  }

  int64_t cost(const MaskedLine& line) const override {
    return line.masks.empty() ? 0 : std::ssize(line.text.ids);
  }

  void run(std::span<MaskedLine* const> lines,
           const std::function<void()>& /*beat*/) const override {
    data::Batch batch = data::masked_batch();
    for (const MaskedLine* line : lines) {
      batch.sample_ids.push_back(line->number);
      append_text(line->text, batch);
      batch.column<int64_t>(data::kMaskedRows).append(line->masks);
    }
    auto fillers = fillers_of(model_, batch, nbest_);
    auto next = std::make_move_iterator(fillers.begin());
    for (MaskedLine* line : lines) {
      const auto end = next + std::ssize(line->masks);
      line->found.assign(next, end);
      next = end;
    }
  }

  bool is_finite(const MaskedLine& line) const override {
    return std::ranges::all_of(line.found, &MaskFillers::is_finite);
  }

  void write(std::span<const MaskedLine> lines) override {
    for (const MaskedLine& line : lines) std::cout << (json_ ? json_of(line) : text_of(line));
  }

 private:
  static int64_t longest_of(const InferRequest& request, const models::TextModel& model) {
    return std::min(masked_lm_of(request.experiment.options).data.max_text_tokens,
                    model.max_length());
  }

  std::string text_of(const MaskedLine& line) const {
    std::vector<std::string> masks;
    for (const auto& mask : line.found) {
      std::vector<std::string> words;
      for (const Filler& filler : mask.best) {
        words.push_back(token_text(tokenizer_, filler.id) + " " + fixed(filler.probability, 4));
      }
      masks.push_back(join(words, ", "));
    }
    return shown_on_stdout(join(masks, "\t")) + "\n";
  }

  std::string json_of(const MaskedLine& line) const {
    nlohmann::ordered_json json{{"text", line.input.text}};
    if (!line.input.problem.empty()) json["problem"] = line.input.problem;
    if (line.cut_tokens > 0) json["cut_tokens"] = line.cut_tokens;
    json["masks"] = nlohmann::ordered_json::array();
    auto filled = line.text.ids;
    for (size_t i = 0; i < line.found.size(); ++i) {
      const auto& best = line.found[i].best;
      auto list = nlohmann::ordered_json::array();
      for (const Filler& filler : best) {
        list.push_back(
            {{"token", token_text(tokenizer_, filler.id)}, {"probability", filler.probability}});
      }
      json["masks"].push_back({{"fillers", std::move(list)}});
      filled[static_cast<size_t>(line.masks[i])] = best.front().id;
    }
    if (line.input.problem.empty()) {
      json["filled"] = line.found.empty() ? line.input.text : tokenizer_.decode(filled);
    }
    return json_line(json);
  }

  const bool json_;
  const int64_t nbest_;
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
  MaskFiller filler(request, run);
  const at::Device device = run.models.front()->device();
  const int64_t max_tokens =
      batch_tokens(masked_lm_of(request.experiment.options).eval.max_tokens, device);
  answer_lines(filler, input,
               {.files = request.files,
                .run = request.run_directory,
                .device = device,
                .max_lines = 256,
                .max_bytes = size_t{1} << 20,
                .batches = {.max_cost = max_tokens},
                .words = {.answer = "a mask of this line",
                          .problem = "no mask of it is filled",
                          .cut_to = "data.max_text_tokens",
                          .cut_share = "of all tokens were not read"},
                .stats = request.stats});
  return 0;
}

}  // namespace stretto::tasks
