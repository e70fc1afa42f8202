#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"

namespace stretto::data {

/// Largest SQuAD file, decompressed: its values are all held in memory. SQuAD 2.0 has 42 MB.
inline constexpr size_t kMaxSquadBytes = size_t{512} << 20;

struct SquadAnswer {
  std::string text;
  int64_t begin = 0;  ///< code points of the paragraph before it; not to be used with kIgnore
};

struct SquadParagraph {
  std::string text;
  std::string title;  ///< of its article; empty where the file has none
};

struct SquadQuestion {
  std::string id, text;
  size_t paragraph = 0;              ///< its place in SquadData::paragraphs
  std::vector<SquadAnswer> answers;  ///< none: the paragraph has none, or none is stated
  bool is_impossible = false;        ///< as the file has it; false where it has nothing
};

/// The content of SQuAD files, in their order.
struct SquadData {
  std::vector<SquadParagraph> paragraphs;
  std::vector<SquadQuestion> questions;
  int64_t skipped_answers = 0;    ///< with kSkip
  int64_t skipped_questions = 0;  ///< those that lost all answers
  LeftOut bad;                    ///< questions that BadSampleRule left out
};

/// What becomes of an answer that is not where the file says: one that begins or ends outside its
/// paragraph, differs from the text there, is empty, or belongs to an impossible question.
enum class BadAnswers {
  kRefuse,  ///< an error
  kSkip,    ///< left out and counted; so is a question that had no other answer
  kIgnore,  ///< offsets are not looked at, and may be missing: scores need texts only
};

struct SquadReading {
  BadAnswers bad_answers = BadAnswers::kRefuse;
  /// Refuse a question that is neither answered nor `is_impossible`: training and scores need one.
  bool require_answers = false;
  BadSampleRule bad_samples = {};  ///< for what read_squad() reads
};

/// Reads files of SQuAD 1.1 or 2.0 in JSON (`data`, `paragraphs`, `context`, `qas`, `id`,
/// `question`, `answers`, `text`, `answer_start`, `is_impossible`); other keys are ignored. An id
/// may be a whole number: it becomes its digits.
///
/// Reads the flat form of `datasets` too: one object a question, {"id", "context", "question",
/// "answers": {"text": […], "answer_start": […]}}, in a list, in a list `data`, or one a line.
/// There, no answers mean that the paragraph has none. Questions with equal contexts in a row share
/// a paragraph.
///
/// A question is bad for wrong types, missing keys, an id that occurs twice, an empty text (but
/// with kIgnore), and bad answers; a paragraph with a wrong shape counts as one bad sample.
///
/// @param paths  as open_bytes() takes them: plain, .gz, .zst, FILE.zip:MEMBER
/// Throws as open_bytes() does; Error(kBadData) with file, place in the JSON and id for bad
/// questions that are not left out, and for a file without questions; with file, line and column
/// for what is not JSON, nested too deeply, or not UTF-8.
SquadData read_squad(std::span<const std::string> paths, const SquadReading& reading = {});

/// Appends the content of one file. @param where  the file, for messages. Throws as read_squad().
/// Ids of questions that `data` has already occur twice, too.
/// @param bad  collects bad questions of several files
void parse_squad(std::string_view bytes, const std::string& where, const SquadReading& reading,
                 SquadData& data, BadSamples& bad);

}  // namespace stretto::data
