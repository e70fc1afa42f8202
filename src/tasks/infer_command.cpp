#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "dist/launch.h"
#include "tasks/commands.h"
#include "tasks/session.h"

namespace stretto::tasks {
namespace {

// Lines that are translated together: enough to fill batches of similar length, few enough that
// output streams.
constexpr size_t kBufferLines = 256;

/// Where the sentences come from: stdin or files, one after the other.
class Input {
 public:
  explicit Input(std::vector<std::string> files) : files_(std::move(files)) {}

  bool next(std::string& line) {
    for (;;) {
      std::istream* stream = current();
      if (stream == nullptr) return false;
      if (std::getline(*stream, line)) {
        if (line.ends_with('\r')) line.pop_back();
        return true;
      }
      if (files_.empty()) return false;
      file_.reset();
      if (++position_ == files_.size()) return false;
    }
  }

  /// True when a reader waits for an answer to each line.
  bool interactive() const { return files_.empty(); }
  /// Whether more input is there already, so that reading on would not wait.
  bool more_at_hand() const { return !files_.empty() || std::cin.rdbuf()->in_avail() > 0; }

 private:
  std::istream* current() {
    if (files_.empty()) return &std::cin;
    if (position_ == files_.size()) return nullptr;
    if (!file_) {
      file_ = std::make_unique<std::ifstream>(files_[position_]);
      if (!*file_) {
        throw Error(ExitCode::kUsage, files_[position_] + " does not exist or cannot be read",
                    "give files that can be read; without files, stdin is translated");
      }
    }
    return file_.get();
  }

  std::vector<std::string> files_;
  size_t position_ = 0;
  std::unique_ptr<std::ifstream> file_;
};

/// One line on its way through the model.
struct Line {
  std::string text, prefix;
  std::vector<int64_t> src;
};

/// Translates line by line and prints.
class Session {
 public:
  Session(const experiment::InferRequest& request, LoadedRun run)
      : request_(request),
        run_(std::move(run)),
        translator_(run_.models, request.experiment.options.decode) {
    if (!request.prefix_file.empty()) prefixes_ = std::ifstream(request.prefix_file);
    if (!request.prefix_file.empty() && !prefixes_) {
      throw Error(ExitCode::kUsage, "--prefix: " + request.prefix_file + " cannot be read",
                  "give a file with a prefix for each line of the source");
    }
  }

  void run() {
    Input input(request_.files);
    std::vector<Line> lines;
    Line line;
    while (input.next(line.text)) {
      line.prefix.clear();
      if (prefixes_.is_open()) std::getline(prefixes_, line.prefix);
      lines.push_back(line);
      if (lines.size() == kBufferLines || !input.more_at_hand()) flush(lines);
    }
    flush(lines);
  }

 private:
  void flush(std::vector<Line>& lines) {
    std::vector<TranslationRequest> requests;
    std::vector<size_t> places;  // of the lines that hold something
    for (size_t i = 0; i < lines.size(); ++i) {
      auto& line = lines[i];
      if (!is_valid_utf8(line.text)) {
        log::warn("line " + std::to_string(first_ + i + 1) +
                  " is not UTF-8; its translation is empty");
        continue;
      }
      line.src.clear();
      run_.tokenizers.src->encode(line.text, line.src);
      if (line.src.empty()) continue;
      shorten(line, first_ + i + 1);
      line.src.push_back(text::kEos);
      TranslationRequest request{
          .src = line.src, .prefix = {}, .sentence_id = static_cast<int64_t>(first_ + i)};
      if (!line.prefix.empty()) run_.tokenizers.tgt->encode(line.prefix, request.prefix);
      requests.push_back(std::move(request));
      places.push_back(i);
    }
    const auto results = translator_.translate(requests);
    size_t next = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool translated = next < places.size() && places[next] == i;
      print(lines[i], translated ? results[next] : std::vector<decoding::Hypothesis>{});
      next += translated ? 1 : 0;
    }
    std::cout.flush();
    first_ += lines.size();
    lines.clear();
  }

  void shorten(Line& line, size_t number) const {
    const auto longest = static_cast<size_t>(request_.experiment.options.data.max_src_tokens) - 1;
    if (line.src.size() <= longest) return;
    log::warn("line " + std::to_string(number) + " has " + std::to_string(line.src.size()) +
              " tokens and is cut to " + std::to_string(longest) + " (data.max_src_tokens)");
    line.src.resize(longest);
  }

  void print(const Line& line, const std::vector<decoding::Hypothesis>& hypotheses) {
    if (request_.json) {
      print_json(line, hypotheses);
      return;
    }
    const auto nbest = static_cast<size_t>(request_.experiment.options.decode.nbest);
    if (hypotheses.empty()) std::cout << "\n";
    for (size_t i = 0; i < hypotheses.size() && i < nbest; ++i) {
      const auto& hypothesis = hypotheses[i];
      if (request_.scores) std::cout << fixed(hypothesis.score, 4) << "\t";
      std::cout << run_.tokenizers.tgt->decode(hypothesis.ids);
      if (request_.alignments) std::cout << "\t" << alignment_text(line, hypothesis);
      std::cout << "\n";
    }
  }

  void print_json(const Line& line, const std::vector<decoding::Hypothesis>& hypotheses) {
    nlohmann::ordered_json json{{"source", line.text}};
    auto list = nlohmann::ordered_json::array();
    for (const auto& hypothesis : hypotheses) {
      nlohmann::ordered_json entry{{"text", run_.tokenizers.tgt->decode(hypothesis.ids)},
                                   {"score", hypothesis.score},
                                   {"log_prob", hypothesis.log_prob},
                                   {"token_log_probs", hypothesis.token_log_probs}};
      auto names = nlohmann::ordered_json::array();
      for (const int64_t id : hypothesis.ids) names.push_back(run_.tokenizers.tgt->piece(id));
      entry["pieces"] = names;
      if (request_.alignments) entry["alignment"] = alignment(line, hypothesis);
      list.push_back(entry);
    }
    json["hypotheses"] = list;
    std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }

  // For each target piece the source piece it looks at most: mean cross-attention of one layer.
  std::vector<std::pair<int64_t, int64_t>> alignment(const Line& line,
                                                     const decoding::Hypothesis& hypothesis) {
    data::Batch batch;
    batch.sample_ids = {0};
    batch.src.ids = line.src;
    batch.src.offsets = {0, static_cast<int32_t>(line.src.size())};
    batch.tgt.ids = hypothesis.ids;
    batch.tgt.ids.push_back(text::kEos);
    batch.tgt.offsets = {0, static_cast<int32_t>(batch.tgt.ids.size())};
    const auto map =
        run_.models.front()->alignments(batch, request_.experiment.options.decode.alignment_layer);
    const auto best = map.front().argmax(1).cpu();
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (int64_t i = 0; i < static_cast<int64_t>(hypothesis.ids.size()); ++i) {
      pairs.emplace_back(best[i].item<int64_t>(), i);
    }
    return pairs;
  }

  std::string alignment_text(const Line& line, const decoding::Hypothesis& hypothesis) {
    std::vector<std::string> parts;
    for (const auto& [source, target] : alignment(line, hypothesis)) {
      parts.push_back(std::to_string(source) + "-" + std::to_string(target));
    }
    return join(parts, " ");
  }

  const experiment::InferRequest& request_;
  LoadedRun run_;
  Translator translator_;
  std::ifstream prefixes_;
  size_t first_ = 0;  // lines already done
};

}  // namespace

int run_infer(const experiment::InferRequest& request) {
  if (dist::detect_launch().kind != dist::Launch::Kind::kSingle) {
    throw Error(ExitCode::kUsage, "stretto infer is one process, and was started as several",
                "start it once for each part of the text");
  }
  const auto folder = train::RunFolder::open(request.run_directory);
  Session session(request, load_run(request.experiment.options, folder, request.checkpoints));
  session.run();
  return 0;
}

}  // namespace stretto::tasks
