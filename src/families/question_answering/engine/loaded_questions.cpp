#include "families/question_answering/engine/loaded_questions.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "tasks/left_out.h"

namespace stretto::tasks {
namespace {

constexpr const char* kAnswersFile = "answers.json";
constexpr const char* kImpossibleKey = "had_impossible_questions";
constexpr size_t kMostAnswersBytes = 1024;

}  // namespace

TextHead span_head() {
  return {.kind = models::TextHeadKind::kSpans};
}

LoadedTextRun load_question_run(const experiment::Experiment& experiment,
                                const runs::RunFolder& folder, const std::string& checkpoints,
                                at::Device device) {
  const HeadOfRun head = [](const auto& /*experiment*/, const auto& /*assets*/) {
    return span_head();
  };
  return load_text_run(experiment, folder, checkpoints, head, device);
}

Assets answer_assets(bool had_impossible) {
  return {{kAnswersFile, nlohmann::json{{kImpossibleKey, had_impossible}}.dump() + "\n"}};
}

bool had_impossible(const Assets& assets) {
  const auto found = assets.find(kAnswersFile);
  if (found == assets.end()) return false;
  const auto json = parse_json(found->second, kAnswersFile, kMostAnswersBytes);
  if (json.is_object() && json.contains(kImpossibleKey) && json.at(kImpossibleKey).is_boolean()) {
    return json.at(kImpossibleKey).get<bool>();
  }
  throw Error(ExitCode::kBadData,
              std::string("tokenizer/") + kAnswersFile + " of the run does not say whether " +
                  kImpossibleKey,
              "copy the run folder again");
}

distributed::Fact questions_fact(const std::string& name, const data::SquadData& questions) {
  Xxh3Stream hash;
  const auto add = [&](const std::string& text) {
    const auto size = static_cast<int64_t>(text.size());
    hash.update(&size, sizeof(size));
    hash.update(text.data(), text.size());
  };
  const auto add_number = [&](int64_t number) { hash.update(&number, sizeof(number)); };
  for (const auto& paragraph : questions.paragraphs) add(paragraph.text);
  for (const auto& question : questions.questions) {
    add(question.id);
    add(question.text);
    add_number(static_cast<int64_t>(question.paragraph));
    add_number(question.is_impossible ? 1 : 0);
    for (const auto& answer : question.answers) {
      add(answer.text);
      add_number(answer.begin);
    }
  }
  return {name, counted(std::ssize(questions.questions), "question") + ", " + hex64(hash.digest())};
}

void warn_of_cut(int64_t questions, int64_t tokens) {
  if (questions == 0) return;
  log::warn(counted(questions, "question") + " cut to data.max_question_tokens: " +
            counted(tokens, "token") + (tokens == 1 ? " was" : " were") + " not read");
}

void warn_of_skipped(const data::SquadData& questions) {
  warn_of_left_out(questions.bad);
  if (questions.skipped_answers == 0) return;
  log::warn(
      counted(questions.skipped_answers, "answer") + " not where the file says: left out, with " +
      counted(questions.skipped_questions, "question") + " that had no other (data.bad_answers)");
}

}  // namespace stretto::tasks
