#include "distill/label_parts.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/lines.h"
#include "data/text_input.h"

namespace stretto::distill {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const Part& part, const fs::path& folder, const char* ending) {
  std::string name = std::to_string(part.number);
  name.insert(0, name.size() < 6 ? 6 - name.size() : 0, '0');
  return folder / ("text_" + std::to_string(part.text)) / (name + ending);
}

// What of a line is labelled. Throws Error(kBadData) where it lacks its column.
std::string_view text_of_line(const data::InputLine& line, const experiment::TextToLabel& text) {
  if (text.column == 0) return line.text;
  std::string_view value;
  if (!data::column_of(line.text, text.column, text.separator, value)) {
    throw Error(ExitCode::kBadData, line.place + ": has no column " + std::to_string(text.column),
                "mend the line, or name the column of the source in the student's configuration");
  }
  return value;
}

// Writes the parts of a text, one after the other.
class PartWriter {
 public:
  PartWriter(size_t text, fs::path folder, int64_t part_lines, std::vector<Part>& parts)
      : folder_(std::move(folder)), part_lines_(part_lines), parts_(parts) {
    open_.text = text;
  }

  void add(std::string_view line) {
    bytes_.append(line);
    bytes_ += '\n';
    if (++open_.lines == part_lines_) end_part();
  }
  void end_part() {
    if (open_.lines == 0) return;
    write_file_atomic(source_of(open_, folder_), bytes_);
    parts_.push_back(open_);
    bytes_.clear();
    open_.lines = 0;
    ++open_.number;
  }

 private:
  fs::path folder_;
  int64_t part_lines_;
  std::vector<Part>& parts_;
  Part open_;
  std::string bytes_;
};

void cut_text(const experiment::TextToLabel& text, PartWriter& writer, CutTexts& cut) {
  data::TextInput input(std::vector<std::string>{text.path});
  for (data::InputLine line; input.next(line);) {
    const auto value = line.problem.empty() ? text_of_line(line, text) : std::string_view();
    if (trim(value).empty()) {
      ++cut.left_out;
      continue;
    }
    writer.add(value);
    ++cut.lines;
  }
}

[[noreturn]] void throw_uneven(const Part& part, const fs::path& folder) {
  throw Error(ExitCode::kBadData,
              labels_of(part, folder).string() + ": has not one label for each of the " +
                  counted(part.lines, "line") + " of " + source_of(part, folder).string(),
              "remove the file: the same command labels these lines again");
}

void join_part(const Part& part, const fs::path& folder, AtomicFile& texts, AtomicFile& labels,
               JoinedText& joined) {
  data::LineReader sources(source_of(part, folder).string());
  data::LineReader answers(labels_of(part, folder).string());
  std::string text_bytes, label_bytes;
  std::string_view source, answer;
  int64_t lines = 0;
  for (; sources.next(source); ++lines) {
    if (!answers.next(answer)) throw_uneven(part, folder);
    if (trim(answer).empty()) {
      ++joined.without_label;
      continue;
    }
    text_bytes.append(source) += '\n';
    label_bytes.append(answer) += '\n';
    ++joined.lines;
  }
  if (lines != part.lines || answers.next(answer)) throw_uneven(part, folder);
  texts.write(text_bytes);
  labels.write(label_bytes);
}

}  // namespace

fs::path source_of(const Part& part, const fs::path& folder) {
  return file_of(part, folder, ".src");
}

fs::path labels_of(const Part& part, const fs::path& folder) {
  return file_of(part, folder, ".labels");
}

CutTexts cut_texts(const std::vector<experiment::TextToLabel>& texts, const fs::path& folder,
                   int64_t part_lines) {
  CutTexts cut;
  for (size_t i = 0; i < texts.size(); ++i) {
    make_directories(folder / ("text_" + std::to_string(i)));
    PartWriter writer(i, folder, part_lines, cut.parts);
    cut_text(texts[i], writer, cut);
    writer.end_part();
  }
  if (cut.lines > 0) return cut;
  throw Error(ExitCode::kBadData, "the student's training text has no line that can be labelled",
              "look at the files that its configuration names in [data]");
}

JoinedText join_parts(const std::vector<Part>& parts, size_t text, const fs::path& folder) {
  const std::string name = "text_" + std::to_string(text);
  JoinedText joined;
  joined.files.text = (folder / (name + ".src")).string();
  joined.files.labels = (folder / (name + ".labels")).string();
  AtomicFile texts(joined.files.text), labels(joined.files.labels);
  for (const Part& part : parts) {
    if (part.text == text) join_part(part, folder, texts, labels, joined);
  }
  texts.publish();
  labels.publish();
  return joined;
}

}  // namespace stretto::distill
