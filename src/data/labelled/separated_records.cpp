#include "data/labelled/separated_records.h"

#include "base/error.h"
#include "base/text.h"
#include "data/bad_samples.h"

namespace stretto::data {

bool SeparatedRecords::next(std::vector<std::string>& fields) {
  std::string_view line;
  fault_.reset();
  if (!next_line(line, /*within_quotes=*/false)) return false;
  line_number_ = lines_.line_number();
  if (kind_ == Kind::kTsv) {
    fields = split(line, separator_);
  } else {
    take_csv(line, fields);
    if (fault_) throw SampleError(*fault_);
  }
  return true;
}

/// A line that its reader refuses may end or begin a quoted field: its quotes tell, by twos.
bool SeparatedRecords::next_line(std::string_view& line, bool within_quotes) {
  try {
    return lines_.next(line);
  } catch (const SampleError& error) {
    const bool changes = has_quotes() && lines_.refused_quotes() % 2 == 1;
    if (!within_quotes) {
      if (!changes) throw;
      throw Error(ExitCode::kBadData,
                  std::string(error.what()) + "; a quoted field may go on behind it",
                  error.advice());
    }
    if (!fault_) fault_.emplace(error);
    line = changes ? "\"" : "";  // what counts of it: the end of the field, and of the record
    return true;
  }
}

/// @param line  of lines_: gone after its next call, which a quoted field may cause
void SeparatedRecords::take_csv(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  std::string more;  // holds the line in which a quoted field ends
  while (true) {
    if (line.starts_with('"')) {
      fields.push_back(take_quoted(line, more));
      if (!line.empty() && line.front() != separator_) {
        const std::string what = "text follows a closing quote";
        const std::string advice = "within a quoted field, a quote is doubled: \"\"";
        if (line.find('"') != std::string_view::npos) {
          refuse(lines_.line_number(), what + ", and more quotes behind it", advice);
        }
        throw SampleError(name(), ":" + std::to_string(lines_.line_number()) + ": " + what, advice);
      }
    } else {
      const size_t comma = std::min(line.find(separator_), line.size());
      fields.emplace_back(line.substr(0, comma));
      line.remove_prefix(comma);
    }
    if (line.empty()) return;
    line.remove_prefix(1);
  }
}

/// The content of the quoted field at the start of `line`, which then begins behind it.
std::string SeparatedRecords::take_quoted(std::string_view& line, std::string& more) {
  const int64_t opened = lines_.line_number();
  std::string field;
  line.remove_prefix(1);
  while (true) {
    const size_t quote = line.find('"');
    field += line.substr(0, quote);
    if (field.size() > static_cast<size_t>(kMaxLineBytes)) {
      refuse(opened, "a quoted field has more than " + with_thousands(kMaxLineBytes) + " bytes",
             "look for a quote that is not closed");
    }
    if (quote == std::string_view::npos) {
      std::string_view further;
      if (!next_line(further, /*within_quotes=*/true)) {
        refuse(opened, "a quote opens and is never closed",
               "close it, or give the file as TSV, where quotes mean nothing");
      }
      more.assign(further);
      line = more;
      field += '\n';
      continue;
    }
    line.remove_prefix(quote + 1);
    if (!line.starts_with('"')) return field;
    field += '"';
    line.remove_prefix(1);
  }
}

void SeparatedRecords::refuse(int64_t line, const std::string& what,
                              const std::string& advice) const {
  throw Error(ExitCode::kBadData, name() + ":" + std::to_string(line) + ": " + what, advice);
}

}  // namespace stretto::data
