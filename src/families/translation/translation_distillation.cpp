#include "families/translation/translation_distillation.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "families/text/text_distillation.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"
#include "models/seq2seq_options.h"

namespace stretto::experiment {
namespace {

// "data.train_src=["/a/b.en"]": JSON's lists and strings are TOML's too.
template <class Values>
std::string distilled_key(const char* key, const Values& values) {
  return std::string(key) + "=" + nlohmann::json(values).dump();
}

void require_one_side(const Experiment& experiment, const std::string& who) {
  const char* odd = nullptr;
  if (models::has_two_encoders(translation_of(experiment).model)) odd = "reads two sources";
  if (!head_names(experiment).empty()) odd = "has several decoders (model.heads)";
  if (odd == nullptr) return;
  throw Error(ExitCode::kUsage, "the " + who + " " + odd + ", which cannot be distilled",
              "take models that read one source and write with one decoder");
}

std::vector<TextToLabel> texts_to_translate(const Experiment& student) {
  require_one_side(student, "student");
  const auto& data = translation_of(student).data;
  std::vector<TextToLabel> texts;
  for (const auto& path : data.train_src) texts.push_back({.path = path});
  const char separator = data.separator.empty() ? '\t' : data.separator.front();
  for (const auto& path : data.train_tsv) {
    texts.push_back({.path = path, .column = data.src_column, .separator = separator});
  }
  if (!texts.empty()) return texts;
  throw Error(ExitCode::kUsage, "the student's configuration names no training text",
              "set data.train_src, or data.train_tsv: its sources are translated by the teacher");
}

// Of each list its own values behind those of the labelled texts.
std::vector<std::string> keys_of_translations(const Experiment& student,
                                              const std::vector<LabelledText>& texts,
                                              StudentData with) {
  const auto& own = translation_of(student).data;
  std::vector<std::string> src, tgt, tsv;
  auto weights = own.train_weights;  // the texts stand in the order of src, then TSV
  for (const auto& text : texts) {
    src.push_back(text.text);
    tgt.push_back(text.labels);
  }
  if (!weights.empty()) weights.resize(texts.size(), 1.0);  // of text beside that of the student
  if (with == StudentData::kLabelledAndOwn) {
    src.insert(src.end(), own.train_src.begin(), own.train_src.end());
    tgt.insert(tgt.end(), own.train_tgt.begin(), own.train_tgt.end());
    tsv = own.train_tsv;
    weights.insert(weights.end(), own.train_weights.begin(), own.train_weights.end());
  }
  std::vector<std::string> keys{distilled_key("data.train_src", src),
                                distilled_key("data.train_tgt", tgt)};
  if (!own.train_tsv.empty()) keys.push_back(distilled_key("data.train_tsv", tsv));
  if (!weights.empty()) keys.push_back(distilled_key("data.train_weights", weights));
  return keys;
}

// Text that is in pieces already has to stay so: a translation joins them for people.
std::vector<std::string> keys_of_teacher(const Experiment& teacher, const Experiment& reader) {
  std::vector<std::string> keys{"decode.nbest=1"};
  const bool in_pieces = translation_of(teacher).tokenizer.type == "vocab" &&
                         translation_of(reader).tokenizer.type == "vocab";
  if (in_pieces) keys.emplace_back("tokenizer.subwords=none");
  return keys;
}

std::vector<std::string> keys_of_shortlist(const std::string& pairs) {
  return {distilled_key("decode.shortlist", pairs)};
}

void require_same_languages(const Experiment& teacher, const Experiment& student) {
  require_one_side(teacher, "teacher");
  const auto& theirs = translation_of(teacher).task;
  const auto& own = translation_of(student).task;
  const auto require = [](const char* key, const std::string& teachers,
                          const std::string& students) {
    if (teachers.empty() || students.empty() || teachers == students) return;
    throw Error(ExitCode::kUsage,
                std::string(key) + " is \"" + teachers + "\" of the teacher and \"" + students +
                    "\" of the student",
                "a student learns the languages of its teacher; where the names alone differ, set "
                "the key to the teacher's name");
  };
  require("task.src_lang", theirs.src_lang, own.src_lang);
  require("task.tgt_lang", theirs.tgt_lang, own.tgt_lang);
}

}  // namespace

FamilyDistillation translation_distillation() {
  return {.texts = &texts_to_translate,
          .data_keys = &keys_of_translations,
          .teacher_keys = &keys_of_teacher,
          .word_level_keys = &word_level_keys,
          .shortlist_keys = &keys_of_shortlist,
          .require_match = &require_same_languages};
}

}  // namespace stretto::experiment
