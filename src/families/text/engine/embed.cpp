#include "families/text/engine/embed.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "families/text/engine/batch_tokens.h"
#include "families/text/engine/embedder.h"
#include "families/text/engine/encoder_of_run.h"
#include "families/text/engine/vector_output.h"
#include "families/text/requests.h"
#include "families/text/text_sections.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

void require_seen_rows(const EmbedRequest& request, const models::TextModel& model) {
  if (!model.is_causal() || request.own.as<EmbedArguments>().pooling != "cls") return;
  throw Error(ExitCode::kUsage,
              "--pooling cls: the first row of a causal model has seen nothing of the text",
              "leave it out: the mean of all rows has");
}

int64_t longest_line_of(const EmbedRequest& request, const models::TextModel& model) {
  const int64_t asked = request.own.as<EmbedArguments>().max_tokens;
  if (asked > model.max_length()) {
    throw Error(ExitCode::kUsage,
                "--max-tokens " + std::to_string(asked) + ": the model has " +
                    std::to_string(model.max_length()) + " positions",
                "give at most so many");
  }
  if (asked > 0) return asked;
  return std::min(experiment::text_sections(request.experiment.options).max_text_tokens,
                  model.max_length());
}

// A line loses the side that texts of the run lose: the other one is what its model has learned.
text::TextBound bound_of(const EmbedRequest& request, int64_t max_tokens) {
  using Side = text::TextBound::Side;
  const bool cuts_start = experiment::text_sections(request.experiment.options).cuts_start;
  return {.max_tokens = max_tokens, .side = cuts_start ? Side::kStart : Side::kEnd, .pairs = false};
}

struct EmbeddedLine : WorkLine {
  text::EncodedText text = {};
  std::span<float> vector = {};  ///< [D], its row among the window's vectors
};

class LineEmbedder : public LineFamily<EmbeddedLine> {
 public:
  LineEmbedder(const EmbedRequest& request, const EncoderOfRun& run, int64_t max_tokens)
      : LineEmbedder(request.own.as<EmbedArguments>(), run, bound_of(request, max_tokens)) {}

  void prepare(EmbeddedLine& line) const override {
    line.text = encoder_.encode(line.input.text);
    line.num_tokens = std::ssize(line.text.ids) + line.text.num_cut;
    line.cut_tokens = line.text.num_cut;
  }

  /// The vector of a line without a token, or with a problem, stays zero.
  void arrange(std::span<EmbeddedLine> window) override {
    const int64_t width = embedder_.width();
    vectors_ = at::zeros({std::ssize(window), width}, at::kFloat);
    auto* row = vectors_.data_ptr<float>();
    for (EmbeddedLine& line : window) {
      num_tokens_ += std::ssize(line.text.ids);
      line.vector = {row, static_cast<size_t>(width)};
      row += width;
    }
  }

  int64_t cost(const EmbeddedLine& line) const override { return std::ssize(line.text.ids); }

  void run(std::span<EmbeddedLine* const> lines,
           const std::function<void()>& /*beat*/) const override {
    std::vector<text::EncodedText> texts;
    for (EmbeddedLine* line : lines) texts.push_back(std::move(line->text));
    const auto vectors = embedder_.embed(texts);
    const auto* from = vectors.const_data_ptr<float>();
    for (EmbeddedLine* line : lines) {
      std::copy_n(from, line->vector.size(), line->vector.begin());
      from += line->vector.size();
    }
  }

  bool is_finite(const EmbeddedLine& line) const override {
    return std::ranges::all_of(line.vector, [](float value) { return std::isfinite(value); });
  }

  void write(std::span<const EmbeddedLine> lines) override {
    output_->write(vectors_.narrow(0, 0, std::ssize(lines)));
  }

  void finish() override { output_->finish(); }

  std::string counts() const override { return counted(num_tokens_, "token"); }

 private:
  LineEmbedder(const EmbedArguments& asked, const EncoderOfRun& run, const text::TextBound& bound)
      : encoder_(*run.tokenizer.tokenizer, bound),
        embedder_(run.model, {.pooling = asked.pooling, .normalize = asked.normalize}),
        output_(asked.output.empty() ? make_json_output()
                                     : make_npy_output(asked.output, embedder_.width())) {}

  const text::TextEncoder encoder_;
  const Embedder embedder_;
  const std::unique_ptr<VectorOutput> output_;
  at::Tensor vectors_;  ///< [lines of the window, D]
  int64_t num_tokens_ = 0;
};

}  // namespace

int embed_lines(const EmbedRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  data::TextInput input(request.files);  // a missing file is told before the model loads
  const auto run =
      load_encoder(request.experiment.options, folder, request.checkpoint, context.device);
  require_seen_rows(request, *run.model);
  const int64_t max_tokens = longest_line_of(request, *run.model);
  LineEmbedder embedder(request, run, max_tokens);
  const at::Device device = run.model->device();
  answer_lines(
      embedder, input,
      {.files = request.files,
       .run = request.run_directory,
       .device = device,
       .max_lines = 4096,
       .max_bytes = size_t{4} << 20,
       .batches = {.order = CostOrder::kLongestFirst,
                   .max_cost = batch_tokens(request.own.as<EmbedArguments>().batch_tokens, device),
                   .for_all_threads = true},
       .words = {.answer = "the vector of this line",
                 .problem = "its vector is zero",
                 .cut_to = counted(max_tokens, "token") + " (--max-tokens)",
                 .cut_share = "of all tokens were left out"},
       .stats = request.stats});
  return 0;
}

}  // namespace stretto::tasks
