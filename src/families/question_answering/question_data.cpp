#include "families/question_answering/question_data.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "config/load.h"
#include "data/byte_stream.h"
#include "data/cache_folder.h"
#include "data/squad/question_windows.h"
#include "families/text/prepared_text.h"
#include "text/encoded_text.h"

namespace stretto::experiment {
namespace {

// So many bytes of JSON are read and verified in a third of a second.
constexpr uintmax_t kQuickBytes = uintmax_t{16} << 20;

bool is_impossible(const data::SquadQuestion& question) {
  return question.is_impossible;
}

data::QuestionCache cache_of(const Experiment& experiment) {
  return {.dir = questions_of(experiment).data.cache_dir, .threads = usable_cores()};
}

data::SquadReading reading_of(const Experiment& experiment) {
  const auto& options = questions_of(experiment).data;
  const bool skip = options.bad_answers == "skip";
  return {.bad_answers = skip ? data::BadAnswers::kSkip : data::BadAnswers::kRefuse,
          .require_answers = true,
          .bad_samples = data::bad_sample_rule(options)};
}

void require_version(const Experiment& experiment, const std::vector<std::string>& files,
                     const data::SquadData& data) {
  const auto impossible = std::find_if(data.questions.begin(), data.questions.end(), is_impossible);
  if (questions_of(experiment).data.version != "1" || impossible == data.questions.end()) return;
  throw Error(ExitCode::kBadData,
              join(files, ", ") + ": question " + printable(impossible->id) +
                  " is marked `is_impossible`, and data.version is \"1\"",
              "set data.version = \"2\" or \"auto\"");
}

/// Bytes on disk; 0 of a file that is not there.
uintmax_t bytes_of(const std::string& path) {
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(data::parse_input_path(path).file, missing);
  return missing ? 0 : bytes;
}

uintmax_t bytes_of(const std::vector<std::string>& files) {
  uintmax_t bytes = 0;
  for (const auto& file : files) bytes += bytes_of(file);
  return bytes;
}

void look_at_questions(const Experiment& experiment, Stage stage, const std::string& key,
                       const std::vector<std::string>& files, const PreflightOptions& how,
                       Preflight& found) {
  for (const auto& file : files) {
    if (bytes_of(file) > 0 || !how.elsewhere) continue;
    found.unread.push_back({key, file});
    return;
  }
  if (bytes_of(files) > kQuickBytes && !how.full) {
    found.unread.push_back({key, "the answers of " + join(files, ", ")});
    return;
  }
  note_stop(found, stage, key, [&] {
    how.keeps ? void(open_questions(experiment, files)) : void(read_questions(experiment, files));
  });
}

}  // namespace

data::SquadData read_questions(const Experiment& experiment,
                               const std::vector<std::string>& files) {
  auto questions = data::read_squad(files, reading_of(experiment));
  require_version(experiment, files, questions);
  return questions;
}

data::StoredQuestions open_questions(const Experiment& experiment,
                                     const std::vector<std::string>& files) {
  auto found = data::open_squad(files, reading_of(experiment), cache_of(experiment));
  require_version(experiment, files, *found.data);
  return found;
}

data::SquadData read_training_text(const Experiment& experiment) {
  const auto& options = questions_of(experiment).data;
  return data::read_squad(options.train, {.bad_answers = data::BadAnswers::kIgnore,
                                          .bad_samples = data::bad_sample_rule(options)});
}

// A reader that asks nothing of answers has the same texts, unless something was left out.
data::StoredQuestions open_training_text(const Experiment& experiment) {
  try {
    auto questions = open_questions(experiment, questions_of(experiment).data.train);
    if (questions.data->skipped_questions == 0 && questions.data->bad.count == 0) return questions;
  } catch (const Error&) {  // training tells it when it looks at answers
  }
  return {.data = std::make_shared<const data::SquadData>(read_training_text(experiment))};
}

data::QuestionWindows open_windows(const Experiment& experiment,
                                   const std::vector<std::string>& files,
                                   const text::Tokenizer& tokenizer) {
  auto found = open_questions(experiment, files);
  if (!found.refusal.empty() && files == questions_of(experiment).data.train) {
    log::warn(found.refusal + "; each start reads the questions anew: " + data::kCacheRemedy);
  }
  return windows_of(experiment, std::move(found), tokenizer);
}

data::QuestionWindows windows_of(const Experiment& experiment, data::StoredQuestions questions,
                                 const text::Tokenizer& tokenizer) {
  auto tokens = data::open_question_tokens(questions, tokenizer, cache_of(experiment));
  return {std::move(questions.data), std::move(tokens), text::template_of(tokenizer),
          window_options(experiment)};
}

void prepare_questions(const Experiment& experiment) {
  const auto& data = questions_of(experiment).data;
  if (!is_prepared(experiment, data.train) || !is_prepared(experiment, data.valid)) return;
  QuestionText lines([&experiment] { return open_training_text(experiment); });
  if (lines.key() == 0) return;  // nothing can be kept
  const auto tokenizer = prepared_tokenizer(experiment, lines);
  for (const auto* files : {&data.train, &data.valid}) {
    if (files->empty()) continue;
    data::open_question_tokens(open_questions(experiment, *files), *tokenizer,
                               cache_of(experiment));
  }
}

bool has_impossible(const data::SquadData& questions) {
  return std::any_of(questions.questions.begin(), questions.questions.end(), is_impossible);
}

metrics::SquadVersion squad_version(const Experiment& experiment, bool has_impossible) {
  const auto& version = questions_of(experiment).data.version;
  const bool second = version == "2" || (version == "auto" && has_impossible);
  return second ? metrics::SquadVersion::kV2 : metrics::SquadVersion::kV1;
}

data::WindowOptions window_options(const Experiment& experiment) {
  const auto& options = questions_of(experiment).data;
  return {.max_tokens = options.max_text_tokens,
          .stride = options.stride,
          .max_question_tokens = options.max_question_tokens};
}

const data::StoredQuestions& QuestionText::questions() {
  if (!questions_.data) questions_ = read_();
  return questions_;
}

bool QuestionText::next(std::string& line) {
  const data::SquadData& data = *questions().data;
  const size_t paragraphs = data.paragraphs.size();
  const size_t number = next_++;
  if (number >= paragraphs + data.questions.size()) return false;
  line =
      number < paragraphs ? data.paragraphs[number].text : data.questions[number - paragraphs].text;
  return true;
}

TokenCounts count_window_tokens(const data::QuestionWindows& windows,
                                const text::Tokenizer& tokenizer) {
  return {.tokens = windows.num_rows(), .unknown = windows.count_rows(tokenizer.specials().unk)};
}

SeenTokens count_question_tokens(const Experiment& experiment,
                                 const std::vector<std::string>& files,
                                 const text::Tokenizer& tokenizer, const PreflightTimer& time) {
  // Nothing interrupts the cutting into windows: a slow machine takes so much in a millisecond.
  constexpr int64_t kBytesOfMillisecond = 2000;
  if (!time.is_endless() &&
      std::cmp_greater(bytes_of(files), time.left().count() * kBytesOfMillisecond)) {
    return {.counts = {}, .unread = join(files, ", ")};
  }
  const data::QuestionWindows windows =
      time.keeps() ? open_windows(experiment, files, tokenizer)
                   : data::QuestionWindows(read_questions(experiment, files), tokenizer,
                                           window_options(experiment));
  return {.counts = count_window_tokens(windows, tokenizer),
          .unread = {},
          .samples = windows.num_windows()};
}

Preflight question_preflight(const Experiment& experiment,
                             const std::vector<config::Problem>& known,
                             const PreflightOptions& how) {
  Preflight found;
  const auto& data = questions_of(experiment).data;
  for (const char* key : {"data.bad_answers", "data.bad_samples", "data.version"}) {
    if (config::is_unreliable(known, key)) return found;
  }
  const auto look = [&](Stage stage, const char* key, const std::vector<std::string>& files) {
    if (files.empty() || config::is_unreliable(known, key)) return;
    look_at_questions(experiment, stage, key, files, how, found);
  };
  look(Stage::kTraining, "data.train", data.train);
  look(Stage::kValidation, "data.valid", data.valid);
  return found;
}

}  // namespace stretto::experiment
