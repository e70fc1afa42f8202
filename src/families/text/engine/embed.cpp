#include "families/text/engine/embed.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/text_input.h"
#include "families/text/engine/embedder.h"
#include "families/text/engine/encoder_of_run.h"
#include "families/text/engine/finite_vectors.h"
#include "families/text/engine/vector_output.h"
#include "families/text/text_sections.h"
#include "report/line_progress.h"

namespace stretto::tasks {
namespace {

// Lines that are embedded together: enough for batches of similar length, few enough that output
// streams and memory is bounded.
constexpr size_t kLinesOfWindow = 4096;
constexpr size_t kBytesOfWindow = size_t{4} << 20;
constexpr int64_t kLinesOfTokenizer = 16;  // that a thread takes at a time
constexpr int64_t kWarningsOfEmbed = 10;

int64_t longest_line_of(const EmbedRequest& request, const models::TextModel& model) {
  const int64_t asked = request.max_tokens > 0
                            ? request.max_tokens
                            : experiment::text_sections(request.experiment.options).max_text_tokens;
  if (request.max_tokens > model.max_length()) {
    throw Error(ExitCode::kUsage,
                "--max-tokens " + std::to_string(request.max_tokens) + ": the model has " +
                    std::to_string(model.max_length()) + " positions",
                "give at most so many");
  }
  return std::min(asked, model.max_length());
}

// A line loses the side that texts of the run lose: the other one is what its model has learned.
text::TextBound bound_of(const EmbedRequest& request, int64_t max_tokens) {
  using Side = text::TextBound::Side;
  const bool cuts_start = experiment::text_sections(request.experiment.options).cuts_start;
  return {.max_tokens = max_tokens, .side = cuts_start ? Side::kStart : Side::kEnd, .pairs = false};
}

class LineEmbedder {
 public:
  LineEmbedder(const EmbedRequest& request, EncoderOfRun run)
      : request_(request),
        run_(std::move(run)),
        max_tokens_(longest_line_of(request, *run_.model)),
        encoder_(*run_.tokenizer.tokenizer, bound_of(request, max_tokens_)),
        embedder_(run_.model, {.pooling = request.pooling,
                               .normalize = request.normalize,
                               .batch_tokens = request.batch_tokens}),
        output_(request.output.empty() ? make_json_output()
                                       : make_npy_output(request.output, embedder_.width())) {}

  void run(data::TextInput& input) {
    const auto start = std::chrono::steady_clock::now();
    start_progress();
    std::vector<data::InputLine> lines;
    size_t bytes = 0;
    for (data::InputLine line; input.next(line);) {
      bytes += line.text.size();
      lines.push_back(std::move(line));
      if (lines.size() == kLinesOfWindow || bytes >= kBytesOfWindow || !input.ready()) {
        flush(lines);
        bytes = 0;
      }
    }
    flush(lines);
    output_->finish();
    progress_.reset();
    tell_of_problems();
    if (request_.stats) {
      log::info(counted(lines_, "line") + " in " + counted(embedder_.num_batches(), "batch") +
                ", " + counted(tokens_, "token") + ", " + fixed(seconds_since(start), 2) + " s");
    }
  }

 private:
  void start_progress() {
    const bool named = data::TextInput::are_files(request_.files);
    const auto kind = report::line_progress_kind(named, request_.stats);
    const bool counts = named && kind != report::LineProgress::Kind::kNone;
    progress_.emplace(kind, counts ? *data::TextInput::count_lines(request_.files) : -1);
  }

  void flush(std::vector<data::InputLine>& lines) {
    if (lines.empty()) return;
    const auto texts = encoded(lines);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!lines[i].problem.empty()) warn_about(lines[i]);
      tokens_ += std::ssize(texts[i].ids);
      cut_tokens_ += texts[i].num_cut;
      cut_lines_ += texts[i].num_cut > 0 ? 1 : 0;
    }
    const auto vectors = embedder_.embed(texts);
    require_finite(vectors, lines, request_.run_directory);
    output_->write(vectors);
    lines_ += std::ssize(lines);
    progress_->update(lines_);
    lines.clear();
  }

  // A line that cannot be read has no tokens.
  std::vector<text::EncodedText> encoded(const std::vector<data::InputLine>& lines) const {
    std::vector<text::EncodedText> texts(lines.size());
    at::parallel_for(0, std::ssize(lines), kLinesOfTokenizer, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) {
        const auto& line = lines[static_cast<size_t>(begin)];
        if (line.problem.empty()) texts[static_cast<size_t>(begin)] = encoder_.encode(line.text);
      }
    });
    return texts;
  }

  void warn_about(const data::InputLine& line) {
    if (++bad_lines_ > kWarningsOfEmbed) return;
    log::warn(line.place + ": " + line.problem + "; its vector is zero");
  }

  // What the text lost in all: of many lines only the first are warned of one by one.
  void tell_of_problems() const {
    if (bad_lines_ > kWarningsOfEmbed) {
      log::warn(with_thousands(bad_lines_) + " lines in all could not be read");
    }
    if (cut_lines_ == 0) return;
    const double share = static_cast<double>(cut_tokens_) /
                         static_cast<double>(std::max<int64_t>(1, tokens_ + cut_tokens_));
    log::warn(counted(cut_lines_, "line") + (cut_lines_ == 1 ? " was" : " were") + " cut to " +
              counted(max_tokens_, "token") + " (--max-tokens): " + percent_text(share) +
              " of all tokens were left out");
  }

  const EmbedRequest& request_;
  EncoderOfRun run_;
  const int64_t max_tokens_;
  text::TextEncoder encoder_;
  Embedder embedder_;
  std::unique_ptr<VectorOutput> output_;
  std::optional<report::LineProgress> progress_;
  int64_t lines_ = 0, tokens_ = 0, bad_lines_ = 0, cut_lines_ = 0, cut_tokens_ = 0;
};

}  // namespace

int embed_lines(const EmbedRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  data::TextInput input(request.files);  // a missing file is told before the model loads
  LineEmbedder embedder(request, load_encoder(request.experiment.options, folder,
                                              request.checkpoint, context.device));
  embedder.run(input);
  return 0;
}

}  // namespace stretto::tasks
